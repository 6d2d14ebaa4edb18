package snapshot

import (
	"context"
	"time"
)

// Pace bounds what the writing or checking of a snapshot takes from the cores that answer
// queries.
type Pace struct {
	// Share is how much of one core each goroutine may take, above 0 and below 1. Any other
	// value: as much as there is.
	Share float64
}

// pacer holds one goroutine to its pace.
type pacer struct {
	pace  Pace
	began time.Time // when it began to work after its last rest
}

func newPacer(p Pace) *pacer { return &pacer{p, time.Now()} }

// rest sleeps until the share of the time since the last rest that was spent working is the
// agreed one. It returns the error of ctx as soon as that is over.
func (p *pacer) rest(ctx context.Context) error {
	if p.pace.Share > 0 && p.pace.Share < 1 {
		owed := time.Duration(float64(time.Since(p.began)) * (1/p.pace.Share - 1))
		if owed <= 0 {
			return ctx.Err()
		}
		t := time.NewTimer(owed)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		p.began = time.Now()
	}
	return ctx.Err()
}
