package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// watch asks once each lookInterval where the stream ends, and whether it is still the same. It returns why the stream cannot be
// followed any more, or nil when ctx ends.
func (c *Cluster) watch(ctx context.Context, l *Log) error {
	for before := uint64(0); ; {
		err := c.Retry(ctx, "asking where the stream ends", func(ctx context.Context) error {
			asked, taken := time.Now(), l.lastTaken()
			_, info, err := c.look(ctx)
			if err == nil {
				err = l.compare(asked, taken, info.State)
			}
			if _, odd := err.(unlikely); odd && taken != before {
				before = taken
				return nil // messages still come
			}
			return err
		})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if c.sleep(ctx, c.pace.look) != nil {
			return nil
		}
	}
}

// lastTaken returns the newest sequence that was taken in.
func (l *Log) lastTaken() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taken
}

// compare notes where the stream ended when that was asked. taken is what was taken in before the question. It returns why the
// stream does not go on from there, which is unlikely.
func (l *Log) compare(asked time.Time, taken uint64, state jetstream.StreamState) error {
	if state.LastSeq < taken {
		return unlikely{fmt.Errorf("%w: it ends with message %d, message %d was taken", ErrShortened, state.LastSeq, taken)}
	}
	l.noteEnd(asked, state.LastSeq)
	if state.FirstSeq > taken+1 {
		return unlikely{fmt.Errorf("%w: it begins with message %d, message %d comes next", ErrPurged, state.FirstSeq, taken+1)}
	}
	return nil
}
