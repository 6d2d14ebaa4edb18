package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// keptManifests are how many snapshots are offered: who fetches one while the next is made finishes.
const keptManifests = 2

// MakesSnapshots reports whether this node is the one that makes snapshots.
func (c *Cluster) MakesSnapshots() bool { return c.maker != nil && c.maker.held() }

// Offer stores a snapshot's files for others, in the order in which they are to appear there: what a file names comes before
// it. The files must not change meanwhile. Parts that are there already are not sent again. Then it removes what only older
// snapshots than the two newest need, and purges the stream below them. It returns ErrNotMaker where another node makes the
// snapshots. After another error this node leaves it to others for a while. It is for one goroutine at a time.
func (c *Cluster) Offer(ctx context.Context, disk vfs.FS, dir string, names []string, what Snapshot) error {
	err := c.offer(ctx, disk, dir, names, what)
	if err != nil {
		c.stats.offerFailures.Add(1)
		c.offerFailed(ctx, err)
		return fmt.Errorf("cannot offer the snapshot of version %d: %w", what.Version, err)
	}
	c.stats.offers.Add(1)
	return nil
}

func (c *Cluster) offer(ctx context.Context, disk vfs.FS, dir string, names []string, what Snapshot) error {
	if !c.MakesSnapshots() {
		return ErrNotMaker
	}
	id, facts, err := c.Facts(ctx)
	if err != nil {
		return err
	}
	record, err := c.RecordAt(ctx, what.Version)
	if err != nil {
		return err
	}
	if record.StateHash != what.StateHash {
		return fmt.Errorf("%w: its state hash is %s, that of the record in the stream %s", ErrOtherLedger, what.StateHash, record.StateHash)
	}
	m := &Manifest{
		Format: manifestFormat, Ledger: id, Node: c.config.NodeID, Snapshot: what, Record: codec.AppendRecord(nil, record), Facts: facts,
	}
	o, err := c.objects(ctx, true)
	if err != nil {
		return err
	}
	if err := o.list(ctx, c); err != nil {
		return err
	}
	for _, name := range names {
		f, err := c.offerFile(ctx, o, disk, dir, name)
		if err != nil {
			return fmt.Errorf("file %s: %w", name, err)
		}
		m.Files = append(m.Files, *f)
	}
	encoded, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("cannot encode the manifest: %w", err)
	}
	if _, err := decodeManifest(encoded); err != nil {
		return err
	}
	if len(encoded) > maxManifestBytes {
		return fmt.Errorf("a manifest of %d bytes", len(encoded))
	}
	if !c.MakesSnapshots() { // who does now may have swept the parts: no manifest named them yet
		return ErrNotMaker
	}
	if err := o.put(ctx, c, manifestName(what.Version), encoded); err != nil {
		return err
	}
	return c.prune(ctx, o)
}

// offerFile stores the parts of a file that are not there.
func (c *Cluster) offerFile(ctx context.Context, o *objects, disk vfs.FS, dir, name string) (*File, error) {
	file, err := disk.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	f := &File{Name: name, Bytes: size, Parts: make([]PartHash, partsOf(size))}
	room := make([]byte, min(partBytes, size))
	for i := range f.Parts {
		if !c.MakesSnapshots() {
			return nil, ErrNotMaker
		}
		part := room[:f.partSize(i)]
		if _, err := file.ReadAt(part, int64(i)*partBytes); err != nil {
			return nil, err
		}
		f.Parts[i] = hashOf(part)
		if o.whole(f.object(i), len(part)) {
			continue
		}
		if err := o.put(ctx, c, f.object(i), part); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// prune keeps the newest snapshots that are whole and what they name. The record of the oldest one stays in the stream, and
// all behind it.
func (c *Cluster) prune(ctx context.Context, o *objects) error {
	if err := o.list(ctx, c); err != nil {
		return err
	}
	var kept []*Manifest
	named := make(map[string]bool)
	for _, v := range o.versions() {
		if len(kept) == keptManifests {
			break
		}
		m, err := o.manifest(ctx, c, v)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			c.logger.Warn("a snapshot that is offered cannot be used", "version", uint64(v), "error", err)
			continue
		}
		kept = append(kept, m)
		named[manifestName(v)] = true
		for i := range m.Files {
			for p := range m.Files[i].Parts {
				named[m.Files[i].object(p)] = true
			}
		}
	}
	if !c.MakesSnapshots() {
		return ErrNotMaker
	}
	if err := o.sweep(ctx, c, named); err != nil {
		return err
	}
	if len(kept) < keptManifests {
		return nil
	}
	return c.purgeBelow(ctx, kept[len(kept)-1].Version)
}

// sweep removes objects that are not named, manifests first, and messages that are of no object: what was being stored when a
// node died.
func (o *objects) sweep(ctx context.Context, c *Cluster, named map[string]bool) error {
	ids := make(map[string]bool)
	var unnamed []*jetstream.ObjectInfo
	for name, i := range o.held {
		if named[name] {
			ids[i.NUID] = true
		} else {
			unnamed = append(unnamed, i)
		}
	}
	slices.SortFunc(unnamed, func(a, b *jetstream.ObjectInfo) int {
		_, am := manifestVersion(a.Name)
		_, bm := manifestVersion(b.Name)
		switch {
		case am && !bm:
			return -1
		case bm && !am:
			return 1
		}
		return bytes.Compare([]byte(a.Name), []byte(b.Name))
	})
	for _, i := range unnamed {
		if err := o.remove(ctx, c, i); err != nil {
			return err
		}
		ids[i.NUID] = true
	}
	for id := range o.chunks {
		if ids[id] {
			continue
		}
		err := c.insist(ctx, "removing snapshots", func(ctx context.Context) error {
			return o.stream.Purge(ctx, jetstream.WithPurgeSubject(o.chunkSubject(id)))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// purgeBelow purges the stream up to the commit that holds a version.
func (c *Cluster) purgeBelow(ctx context.Context, v ledger.Version) error {
	stream, info, err := c.bind(ctx)
	if err != nil {
		return err
	}
	begin, err := c.place(ctx, stream, info, ledger.LogPoint{Version: v})
	if errors.Is(err, ErrPurged) {
		return nil
	}
	if err != nil || begin <= info.State.FirstSeq {
		return err
	}
	err = c.insist(ctx, "purging the stream", func(ctx context.Context) error {
		return stream.Purge(ctx, jetstream.WithPurgeSequence(begin))
	})
	if err == nil {
		c.logger.Info("purged the stream", "below_version", uint64(v), "first", begin)
	}
	return err
}

// RecordAt returns the record of a version from the stream. ErrPurged: the stream does not hold it any more. ErrShortened: it
// does not hold it yet.
func (c *Cluster) RecordAt(ctx context.Context, v ledger.Version) (*ledger.Record, error) {
	if v == 0 {
		return nil, errors.New("there is no record of version 0")
	}
	stream, info, err := c.bind(ctx)
	if err != nil {
		return nil, err
	}
	begin, err := c.place(ctx, stream, info, ledger.LogPoint{Version: v})
	if err != nil {
		return nil, err
	}
	h, err := c.headAt(ctx, stream, begin)
	if err != nil {
		return nil, err
	}
	if h.first == 0 || h.first > v {
		return nil, fmt.Errorf("%w, version %d", ErrPurged, v)
	}
	d, err := newDecoder(begin-1, ledger.LogPoint{Version: h.first - 1, StateHash: h.state}, c.stats.refuse)
	if err != nil {
		return nil, err
	}
	defer d.close()
	for at := begin; at <= info.State.LastSeq; at++ {
		data, err := c.dataAt(ctx, stream, at)
		if err != nil {
			return nil, err
		}
		commit, err := d.take(at, data)
		if err != nil {
			return nil, err
		}
		for _, r := range commit {
			if r.Version == v {
				return r, nil
			}
		}
	}
	return nil, fmt.Errorf("%w: it has no record of version %d", ErrShortened, v)
}
