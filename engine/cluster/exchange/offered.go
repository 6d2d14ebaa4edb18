package exchange

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/cluster"
	"ledgerd/engine/ledger"
)

// offeredBytes is what manifests may take beside the stream, where the account asks for bounds.
const offeredBytes = 64 << 20

// nodeOffer is what one node offers.
type nodeOffer struct {
	revision  uint64
	manifests []*Manifest // newest first
	err       error       // why they cannot be read
}

// list returns what the nodes offer, by node, as the server knows that leads the bucket: one that lags behind it would tell less.
func (x *Exchange) list(ctx context.Context) (kv jetstream.KeyValue, all map[string]nodeOffer, err error) {
	err = x.cluster.RetryWithin(ctx, x.timeout, "listing the snapshots", func(ctx context.Context) (err error) {
		if kv, err = x.cluster.Bucket(ctx, "snapshots", "which nodes hold which snapshots of the log", offeredBytes); err != nil {
			return err
		}
		stream, err := x.cluster.JetStream().Stream(ctx, "KV_"+kv.Bucket())
		if err != nil {
			return err
		}
		prefix := "$KV." + kv.Bucket() + "."
		info, err := cluster.LeaderInfo(ctx, stream, jetstream.WithSubjectFilter(prefix+">"))
		if err != nil {
			return err
		}
		all = make(map[string]nodeOffer)
		for subject := range info.State.Subjects {
			m, err := stream.GetLastMsgForSubject(ctx, subject)
			if err != nil {
				return err
			}
			if m.Header.Get("KV-Operation") == "" { // else it was removed
				manifests, err := decodeManifests(m.Data)
				all[strings.TrimPrefix(subject, prefix)] = nodeOffer{m.Sequence, manifests, err}
			}
		}
		return nil
	})
	return kv, all, err
}

// put makes known what this node offers.
func (x *Exchange) put(ctx context.Context, kv jetstream.KeyValue, manifests []*Manifest) error {
	value, err := json.Marshal(manifests)
	if err != nil {
		return fmt.Errorf("cannot encode the manifests: %w", err)
	}
	if most := x.cluster.JetStream().Conn().MaxPayload(); most > 0 && int64(len(value)) > most {
		return fmt.Errorf("the manifests have %d bytes, the nats-servers take %d (max_payload)", len(value), most)
	}
	return x.cluster.Retry(ctx, "offering a snapshot", func(ctx context.Context) error {
		_, err := kv.Put(ctx, x.config.NodeID, value)
		return err
	})
}

// forget removes what other nodes offer that nobody can begin with any more: all of it is of another ledger, or of before a version.
// What cannot be read may be of a newer program, and stays.
func (x *Exchange) forget(ctx context.Context, kv jetstream.KeyValue, all map[string]nodeOffer, ledgerID string, before ledger.Version) {
	for node, o := range all {
		current := func(m *Manifest) bool { return m.Ledger == ledgerID && m.Version >= before }
		if node == x.config.NodeID || o.err != nil || slices.ContainsFunc(o.manifests, current) {
			continue
		}
		// Where that fails, as where the node offers something anew, the next offer sees to it.
		_ = kv.Delete(ctx, node, jetstream.LastRevision(o.revision))
	}
}

// Offered returns the manifests of all snapshots of the ledger that are offered, newest first. ErrNoSnapshot: there is none.
func (x *Exchange) Offered(ctx context.Context) ([]*Manifest, error) {
	id, _, err := x.cluster.Facts(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot look for snapshots: %w", err)
	}
	_, offers, err := x.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot look for snapshots: %w", err)
	}
	var all []*Manifest
	unreadable := error(ErrNoSnapshot)
	for node, o := range offers {
		if o.err != nil {
			unreadable = fmt.Errorf("%w; that of node %s: %w", unreadable, node, o.err)
		}
		for _, m := range o.manifests {
			if m.Ledger == id && m.Node == node {
				all = append(all, m)
			}
		}
	}
	if len(all) == 0 {
		return nil, unreadable
	}
	slices.SortFunc(all, func(a, b *Manifest) int {
		return cmp.Or(cmp.Compare(b.Version, a.Version), cmp.Compare(a.Node, b.Node))
	})
	return all, nil
}
