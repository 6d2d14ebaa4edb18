package wait

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger/ledgertest"
)

// F25: the longest pause doubles with each failure.
func TestBackoffDoublesItsBoundUpToTheMost(t *testing.T) {
	highest := func(n int64) int64 { return n - 1 }
	b := Backoff{Min: 250 * time.Millisecond, Max: 3 * time.Second, Random: highest}
	for i, want := range []time.Duration{500, 1000, 2000, 3000, 3000, 3000, 500} {
		if i == 6 {
			b.Reset()
		}
		ledgertest.Equal(t, b.Next(), want*time.Millisecond, "the longest wait after failure %d", i+1)
	}
}

// F25: pauses are drawn at random.
func TestBackoffIsSpreadBetweenItsBounds(t *testing.T) {
	for name, tt := range map[string]struct {
		min, max time.Duration
		spread   bool
	}{
		"usual":             {250 * time.Millisecond, 10 * time.Second, true},
		"no room":           {time.Second, time.Second, false},
		"most below least":  {time.Second, time.Millisecond, false},
		"largest durations": {time.Second, 1<<63 - 1, true},
	} {
		for _, random := range []func(int64) int64{nil, rand.New(rand.NewPCG(1, 2)).Int64N} {
			waits := map[time.Duration]bool{}
			b := Backoff{Min: tt.min, Max: tt.max, Random: random}
			for i := range 500 {
				got := b.Next()
				if got < tt.min || got > max(tt.min, tt.max) {
					t.Fatalf("%s: %v after failure %d, want %v to %v", name, got, i+1, tt.min, tt.max)
				}
				waits[got] = true
			}
			ledgertest.Equal(t, len(waits) > 450, tt.spread, "%s: whether 500 waits are of many times: %d", name, len(waits))
		}
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		start, b := time.Now(), Backoff{Min: time.Second, Max: time.Second}
		first, second := b.Wait(ctx), b.Wait(ctx)
		if first != nil || !errors.Is(second, context.DeadlineExceeded) || time.Since(start) != 1500*time.Millisecond {
			t.Errorf("%v, %v after %v", first, second, time.Since(start))
		}
	})
}
