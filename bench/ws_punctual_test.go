package bench

import (
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/bench/feed"
)

// What was due while a phase lasted counts as late as it is read, and nothing else does.
func TestAPhaseCountsWhatWasDueWhileItLasted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := feed.New(io.Discard, feed.Config{Accounts: 10, Updates: 4})
		if err != nil {
			t.Fatal(err)
		}
		p := &punctual{feed: f, first: f.Newest(), frames: make([]atomic.Int64, 1)}
		ph := newPhase()
		before := time.Now()
		time.Sleep(time.Second)
		within := time.Now()
		over := make(chan error)
		go func() { over <- p.during(t.Context(), ph, func() { time.Sleep(time.Second) }) }()
		time.Sleep(3 * time.Second) // it waits for what is not read yet
		for due, frames := range map[time.Time]int{before: 100, within: 4, time.Now(): 10} {
			ph.record(0, time.Now(), due, frames)
		}
		p.frames[0].Store(4)
		if err := <-over; err != nil {
			t.Fatal(err)
		}
		if counted := ph.merged(); counted.Count() != 4 || counted.Quantile(0.5).Round(time.Second/10) != 3*time.Second {
			t.Errorf("%d frames are counted, of %v, want 4 of 3 s", counted.Count(), counted.Quantile(0.5))
		}
	})
}
