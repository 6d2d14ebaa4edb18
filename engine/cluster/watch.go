package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// watch asks once each lookInterval where the stream ends, and whether it is still the same. It returns why the stream cannot be
// followed any more, or nil when ctx ends.
func (c *Cluster) watch(ctx context.Context, l *Log) error {
	defer c.clearFault(watching, false)
	var odd confirmer // that the stream is gone, or does not go on from what was taken
	for before := uint64(0); ; {
		asked, taken := time.Now(), l.lastTaken()
		if taken != before {
			before, odd = taken, confirmer{} // messages still come
		}
		_, info, err := c.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, jetstream.ErrStreamNotFound):
			if odd.persisted(c.pace.gone) {
				return fmt.Errorf("%w: there is none of this name", ErrRecreated)
			}
			c.setFault(watching, err)
		case permanent(err):
			return err
		case err != nil:
			c.setFault(watching, err)
		default:
			c.clearFault(watching, true)
			if err := l.compare(&odd, asked, taken, info.State); err != nil {
				return err
			}
		}
		if c.sleep(ctx, c.pace.look) != nil {
			return nil
		}
	}
}

const watching = "asking where the stream ends"

// lastTaken returns the newest sequence that was taken in.
func (l *Log) lastTaken() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taken
}

// compare notes where the stream ended when that was asked. taken is what was taken in before the question. It returns why the
// stream does not go on from there, once that has lasted.
func (l *Log) compare(odd *confirmer, asked time.Time, taken uint64, state jetstream.StreamState) error {
	if state.LastSeq >= taken {
		l.noteEnd(asked, state.LastSeq)
	}
	var err error
	switch {
	case state.LastSeq < taken:
		err = fmt.Errorf("%w: it ends with message %d, message %d was taken", ErrShortened, state.LastSeq, taken)
	case state.FirstSeq > taken+1:
		err = fmt.Errorf("%w: it begins with message %d, message %d comes next", ErrPurged, state.FirstSeq, taken+1)
	default:
		*odd = confirmer{}
		return nil
	}
	if !odd.persisted(l.cluster.pace.gone) {
		return nil
	}
	return err
}
