package upstream

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
)

func slotOf(n int) ledger.Slot { return ledger.Slot(n) }

func TestBackoffDoublesItsBoundUpToTheMost(t *testing.T) {
	highest := func(n int64) int64 { return n - 1 }
	b := Backoff{Min: 250 * time.Millisecond, Max: 3 * time.Second, Random: highest}
	for i, want := range []time.Duration{500, 1000, 2000, 3000, 3000, 3000} {
		if got := b.Next(); got != want*time.Millisecond {
			t.Errorf("at most %v after failure %d, want %v", got, i+1, want*time.Millisecond)
		}
	}
	b.Reset()
	if got := b.Next(); got != 500*time.Millisecond {
		t.Errorf("at most %v after a success, want 500ms", got)
	}
}

func TestBackoffIsNeverShorterThanTheLeast(t *testing.T) {
	bounds := map[string]Backoff{
		"usual":             {Min: 250 * time.Millisecond, Max: 10 * time.Second},
		"no room":           {Min: time.Second, Max: time.Second},
		"most below least":  {Min: time.Second, Max: time.Millisecond},
		"largest durations": {Min: time.Second, Max: 1<<63 - 1},
	}
	for name, b := range bounds {
		b.Random = rand.New(rand.NewPCG(1, 2)).Int64N
		for i := range 500 {
			if got := b.Next(); got < b.Min || got > max(b.Min, b.Max) {
				t.Fatalf("%s: %v after failure %d, want %v to %v", name, got, i+1, b.Min, b.Max)
			}
		}
	}
}

func TestBackoffSpreadsItsAskers(t *testing.T) {
	waits := make(map[time.Duration]bool)
	for range 100 {
		b := Backoff{Min: 250 * time.Millisecond, Max: 10 * time.Second}
		waits[b.Next()] = true
	}
	if len(waits) < 90 {
		t.Errorf("100 askers wait %d different times", len(waits))
	}
}

func TestWaitIsAsLongAsTheNodeAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Backoff{Min: time.Second, Max: time.Second}
		for _, want := range []time.Duration{0, 7 * time.Second} {
			start := time.Now()
			if err := b.Wait(t.Context(), want); err != nil || time.Since(start) != max(want, time.Second) {
				t.Errorf("asked for %v: waited %v, err %v", want, time.Since(start), err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		start := time.Now()
		if err := b.Wait(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second/2 {
			t.Errorf("Wait returned %v after %v, want the context's end", err, time.Since(start))
		}
	})
}
