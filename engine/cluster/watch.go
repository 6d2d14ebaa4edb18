package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// watch asks once a second where the stream ends, and whether it is still the same. It returns why the stream cannot be
// followed any more, or nil when ctx ends.
func (c *Cluster) watch(ctx context.Context, l *Log) error {
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	defer c.clear(watching)
	var odd doubt // that there is less than was taken
	for {
		asked, taken := time.Now(), l.lastTaken()
		var info *jetstream.StreamInfo
		err := c.request(ctx, func(ctx context.Context) (err error) {
			_, info, err = c.look(ctx)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, jetstream.ErrStreamNotFound):
			if odd.lasts(c.goneFor) {
				return fmt.Errorf("%w: there is none of this name", ErrRecreated)
			}
			c.troubled(watching, err)
		case permanent(err):
			return err
		case err != nil:
			c.troubled(watching, err)
		default:
			c.clear(watching)
			if err := l.compare(asked, taken, info.State.LastSeq, &odd); err != nil {
				return err
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
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

// compare notes where the stream ended when that was asked. taken is what was taken in before the question, odd that answers
// told of less.
func (l *Log) compare(asked time.Time, taken, last uint64, odd *doubt) error {
	if last >= taken {
		l.told(asked, last)
		*odd = doubt{}
		return nil
	}
	if odd.lasts(l.cluster.goneFor) {
		return fmt.Errorf("%w: it ends with message %d, message %d was taken", ErrShortened, last, taken)
	}
	return nil
}
