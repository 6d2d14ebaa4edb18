package sim

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
)

func TestSlotsComeAtTheirPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var paced []ledger.Event
		err := open(t, "accounts=100,slots=50,slot_time=250ms").Run(t.Context(), nil, func(_ context.Context, e ledger.Event) error {
			paced = append(paced, e)
			if b, ok := e.(*ledger.Block); ok {
				if got, want := time.Since(start), time.Duration(b.Slot)*250*time.Millisecond; got != want {
					t.Errorf("slot %d came after %v, want %v", b.Slot, got, want)
				}
				if want := genesisTime + int64(b.Slot)/4; b.Time.Value != want {
					t.Errorf("slot %d: block time %d, want %d", b.Slot, b.Time.Value, want)
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// What was shown before a restart is shown again at once, and what is new when its slot comes.
func TestWhatWasShownIsNotWaitedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const spec = "accounts=100,fork_rate=0,skip_rate=0,finality=0,slots=60"
		all := books(t, run(t, spec, nil))
		from := all[9].resumePoint()
		from.Newest = from.Slot + 30
		start := time.Now()
		err := open(t, spec).Run(t.Context(), from, func(_ context.Context, e ledger.Event) error {
			if b, ok := e.(*ledger.Block); ok {
				want := time.Duration(0)
				if b.Slot > from.Newest {
					want = time.Duration(b.Slot-from.Newest) * defaultSlot
				}
				if got := time.Since(start); got != want {
					t.Errorf("slot %d came after %v, want %v", b.Slot, got, want)
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestPaceChangesNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sameEvents(t, "paced", run(t, "accounts=100,slots=40,slot_time=400ms", nil), run(t, "accounts=100,slots=40,slot_time=0", nil))
	})
}

func TestABusyReceiverIsNotFloodedAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		at := make(map[ledger.Slot]time.Duration)
		err := open(t, "accounts=100,skip_rate=0,slots=8").Run(t.Context(), nil, func(_ context.Context, e ledger.Event) error {
			if b, ok := e.(*ledger.Block); ok {
				at[b.Slot] = time.Since(start)
				if b.Slot == 2 {
					time.Sleep(10 * time.Second) // of the bubble's own clock
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("Run: %v", err)
		}
		if late := at[8] - at[4]; late != 4*defaultSlot {
			t.Errorf("slots 4 to 8 came within %v, want %v: %v", late, 4*defaultSlot, at)
		}
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- open(t, "accounts=100").Run(ctx, nil, func(context.Context, ledger.Event) error { return nil })
		}()
		time.Sleep(defaultSlot * 5 / 2) // of the bubble's own clock: in the middle of a slot
		stopped := time.Now()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || time.Since(stopped) != 0 {
			t.Errorf("Run ended %v after its context with %v", time.Since(stopped), err)
		}
	})
	// Flat out nothing waits for a clock.
	ctx, cancel := context.WithCancel(t.Context())
	err := open(t, "accounts=100,slot_time=0").Run(ctx, nil, func(_ context.Context, e ledger.Event) error {
		if slot, _ := slotOf(e); slot == 3 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v, want %v", err, context.Canceled)
	}
}

func TestRunReturnsTheErrorOfEmit(t *testing.T) {
	full := errors.New("no room")
	fails := map[string]func(ledger.Event) bool{
		"at base state": func(e ledger.Event) bool { _, ok := e.(*ledger.BaseState); return ok },
		"at a block":    func(e ledger.Event) bool { _, ok := e.(*ledger.Block); return ok },
		"at a confirmed status": func(e ledger.Event) bool {
			s, ok := e.(*ledger.SlotStatus)
			return ok && s.Status == ledger.StatusConfirmed
		},
		"at a finalized status": func(e ledger.Event) bool {
			s, ok := e.(*ledger.SlotStatus)
			return ok && s.Status == ledger.StatusFinalized
		},
	}
	for when, fail := range fails {
		emitted := 0 // after the failure
		err := open(t, "accounts=100,slot_time=0").Run(t.Context(), nil, func(_ context.Context, e ledger.Event) error {
			if emitted > 0 || fail(e) {
				emitted++
				return full
			}
			return nil
		})
		if err != full || emitted != 1 {
			t.Errorf("%s: Run: %v, %d events after it, want %v as it is", when, err, emitted-1, full)
		}
	}
}
