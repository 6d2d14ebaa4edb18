// Package wait has the pauses of whoever tries again, and a sleep that ends with a context. Like engine/ledger it is for everybody, the load harness
// too, and imports the standard library alone. A Backoff belongs to the goroutine that waits.
package wait

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff says how long to wait before trying again: at least Min, and at most a bound that
// doubles with each failure until it is Max, anywhere between with equal chance. So a node that
// comes back is not met by everybody at once, and nobody ever spins.
type Backoff struct {
	Min, Max time.Duration
	// Random returns a number from 0 up to, not including, n; nil is math/rand.
	Random func(n int64) int64

	bound time.Duration // of the last wait, 0 before the first
}

// Next counts a failure and returns how long to wait after it.
func (b *Backoff) Next() time.Duration {
	b.bound = max(b.bound, b.Min)
	if b.bound < b.Max/2 {
		b.bound *= 2
	} else {
		b.bound = b.Max
	}
	spread := int64(b.bound - b.Min)
	if spread <= 0 {
		return b.Min
	}
	random := b.Random
	if random == nil {
		random = rand.Int64N
	}
	return b.Min + time.Duration(random(spread+1))
}

// Reset forgets all failures: something worked.
func (b *Backoff) Reset() { b.bound = 0 }

// Wait counts a failure and waits as long as Next says. It returns ctx's error if that ends first.
func (b *Backoff) Wait(ctx context.Context) error { return Sleep(ctx, b.Next()) }

// Sleep waits, or returns ctx's error if that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err()
}
