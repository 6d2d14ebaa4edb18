package cluster

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/ledger"
)

// bindAt waits for the stream as bind does, and returns the sequence of the message to begin with, too, for a node that stands at a
// point: the first of the commit that holds the point's record, so that it can be compared, or, where that was purged, of the next one.
func (c *Cluster) bindAt(ctx context.Context, from ledger.LogPoint) (stream jetstream.Stream, info *jetstream.StreamInfo, begin uint64, err error) {
	if stream, info, err = c.bind(ctx); err == nil {
		begin, err = c.findStart(ctx, stream, info, from)
	}
	return stream, info, begin, err
}

// findStart returns the sequence of which bindAt tells.
func (c *Cluster) findStart(ctx context.Context, stream jetstream.Stream, info *jetstream.StreamInfo, from ledger.LogPoint) (uint64, error) {
	first, last := info.State.FirstSeq, info.State.LastSeq
	if info.State.Msgs == 0 {
		switch founder := info.Config.Metadata[founderKey]; {
		case last > 0:
			return 0, fmt.Errorf("%w: it is empty", ErrPurged)
		case founder == c.config.NodeID:
		case founder != "":
			return 0, fmt.Errorf("%w: node %s has not begun it yet, with the ledger that it holds", ErrPurged, founder)
		case from.Version > 0 && c.config.LedgerID != "":
			return 0, fmt.Errorf("%w: it is empty, this node holds version %d", ErrShortened, from.Version)
		}
		return 1, nil
	}
	// The versions of messages never fall: from one on, the node does not hold them.
	var newest head // of the messages that the node holds, as far as it was looked at
	var failed error
	after := first + uint64(sort.Search(int(last+1-first), func(i int) bool {
		h, err := c.headAt(ctx, stream, first+uint64(i))
		failed = errors.Join(failed, err)
		if failed != nil || h.first > from.Version {
			return true
		}
		newest = h
		return false
	}))
	if failed != nil {
		return 0, failed
	}
	begin := first
	if back := 1 + uint64(newest.chunk); first+back <= after {
		begin = after - back
	}
	return c.nextCommitStart(ctx, stream, begin, last, from)
}

// GoesOn returns nil where the stream holds what comes after a version, and ErrPurged where it was purged past that: who holds
// no more must begin with a newer snapshot. It looks at a few messages.
func (c *Cluster) GoesOn(ctx context.Context, v ledger.Version) error {
	_, _, _, err := c.bindAt(ctx, ledger.LogPoint{Version: v})
	return err
}

// nextCommitStart returns the first message from begin on that is the first of a commit, or a claim: a purge may have cut what
// the stream begins with. What was cut must be held already.
func (c *Cluster) nextCommitStart(ctx context.Context, stream jetstream.Stream, begin, last uint64, from ledger.LogPoint) (uint64, error) {
	for at := begin; at <= last; at++ {
		h, err := c.headAt(ctx, stream, at)
		if err != nil {
			return 0, err
		}
		if h.first > from.Version+1 {
			break
		}
		if h.chunk == 0 && h.first > 0 {
			return at, nil
		}
	}
	return 0, fmt.Errorf("%w, version %d", ErrPurged, from.Version+1)
}

// headAt returns the head of a message, the zero value if it was purged meanwhile.
func (c *Cluster) headAt(ctx context.Context, stream jetstream.Stream, sequence uint64) (head, error) {
	data, err := c.dataAt(ctx, stream, sequence)
	if errors.Is(err, ErrPurged) {
		return head{}, nil
	}
	if err != nil {
		return head{}, err
	}
	h, err := decodeHead(data)
	return h, c.stats.countDamage(sequence, err)
}

// dataAt returns a message that was in the stream; ErrPurged: it was purged meanwhile.
func (c *Cluster) dataAt(ctx context.Context, stream jetstream.Stream, sequence uint64) (data []byte, err error) {
	err = c.Retry(ctx, "reading the stream", func(ctx context.Context) error {
		m, err := stream.GetMsg(ctx, sequence)
		if err == nil {
			data = m.Data
		}
		if !errors.Is(err, jetstream.ErrMsgNotFound) {
			return err
		}
		_, now, lookErr := c.look(ctx)
		switch {
		case lookErr != nil:
			return lookErr
		case now.State.FirstSeq > sequence:
			return fmt.Errorf("%w: message %d", ErrPurged, sequence)
		}
		return unlikely{&DamageError{sequence, "it is missing"}}
	})
	return data, err
}
