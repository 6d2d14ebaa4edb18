package snapshot

import (
	"context"
	"time"
)

// Pace bounds how much time of the cores the writing or checking of a snapshot takes, so that
// queries keep their share.
type Pace struct {
	// Share returns how much of one core each goroutine may take from now on, above 0 and below 1.
	// Any other value, or no function: as much as there is. Any goroutine may call it.
	Share func() float64
}

const (
	// slice is how long a goroutine works at least before it rests: resting takes microseconds too.
	slice = 200 * time.Microsecond
	// longestWork bounds the time between two rests that counts as work. A longer time was a wait for the disk, or the machine stood
	// still: a disk that stalls for half a minute would else lead to rests of minutes, during which a snapshot pins memory.
	longestWork = 100 * time.Millisecond
)

// pacer holds one goroutine to its pace.
type pacer struct {
	pace  Pace
	began time.Time // when it began to work after its last rest
}

func newPacer(p Pace) *pacer { return &pacer{p, time.Now()} }

// rest sleeps, if a rest is due, until the work since the last rest is the agreed share of the time. It returns the error of
// ctx as soon as ctx ends.
func (p *pacer) rest(ctx context.Context) error {
	if p.pace.Share == nil {
		return ctx.Err()
	}
	worked := min(time.Since(p.began), longestWork)
	if worked < slice {
		return ctx.Err()
	}
	if share := p.pace.Share(); share > 0 && share < 1 {
		t := time.NewTimer(time.Duration(float64(worked) * (1/share - 1)))
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	p.began = time.Now()
	return ctx.Err()
}
