package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/ledger"
)

// place returns the sequence of the message to begin with for a node that stands at a point: the first of the commit that
// holds the point's record, so that it can be compared, or, where that was purged, of the one behind.
func (c *Cluster) place(ctx context.Context, stream jetstream.Stream, info *jetstream.StreamInfo, from ledger.LogPoint) (uint64, error) {
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
	// The messages from behind on are of versions that the node does not hold.
	behind, err := c.search(ctx, stream, first, last+1, from.Version+1)
	if err != nil {
		return 0, err
	}
	if behind == first { // wholeFrom tells whether that is what comes next
		return c.wholeFrom(ctx, stream, behind, last, from)
	}
	h, err := c.headAt(ctx, stream, behind-1)
	if err != nil {
		return 0, err
	}
	begin, err := c.search(ctx, stream, first, behind, h.first)
	if err != nil {
		return 0, err
	}
	return c.wholeFrom(ctx, stream, begin, last, from)
}

// GoesOn returns nil where the stream holds what comes behind a version, and ErrPurged where it was purged past that: who holds
// no more must begin with a newer snapshot. It looks at a few messages.
func (c *Cluster) GoesOn(ctx context.Context, v ledger.Version) error {
	stream, info, err := c.bind(ctx)
	if err != nil {
		return err
	}
	_, err = c.place(ctx, stream, info, ledger.LogPoint{Version: v})
	return err
}

// wholeFrom returns the first message from begin on that is the first of a commit, or a claim: a purge may have cut what
// the stream begins with. What was cut must be held already.
func (c *Cluster) wholeFrom(ctx context.Context, stream jetstream.Stream, begin, last uint64, from ledger.LogPoint) (uint64, error) {
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

// search returns the first sequence from low to before high whose message is of a version from v on; high if there is
// none. The versions of messages never fall.
func (c *Cluster) search(ctx context.Context, stream jetstream.Stream, low, high uint64, v ledger.Version) (uint64, error) {
	for low < high {
		middle := low + (high-low)/2
		h, err := c.headAt(ctx, stream, middle)
		if err != nil {
			return 0, err
		}
		if h.first >= v {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low, nil
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
	var d *DamageError
	if errors.As(err, &d) {
		d.Sequence = sequence
		c.stats.refuse(d.Kind)
	}
	return h, err
}

// dataAt returns a message that was in the stream; ErrPurged: it was purged meanwhile.
func (c *Cluster) dataAt(ctx context.Context, stream jetstream.Stream, sequence uint64) (data []byte, err error) {
	missing := 0
	err = c.insist(ctx, "reading the stream", func(ctx context.Context) error {
		m, err := stream.GetMsg(ctx, sequence)
		if err == nil {
			data = m.Data
		}
		if !errors.Is(err, jetstream.ErrMsgNotFound) {
			return err
		}
		if missing++; missing < goneLooks {
			return err // a copy may have been asked that is not up to date
		}
		_, now, err := c.look(ctx)
		switch {
		case err != nil:
			return err
		case now.State.FirstSeq > sequence:
			return fmt.Errorf("%w: message %d", ErrPurged, sequence)
		}
		return &DamageError{sequence, BadOrder, "it is missing"}
	})
	return data, err
}
