package sim

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// paced runs a specification in a bubble and tells how long after its start each event came.
func paced(t *testing.T, spec string, from *ledger.ResumePoint, came func(e ledger.Event, after time.Duration)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		visit(t, spec, from, func(e ledger.Event) { came(e, time.Since(start)) })
	})
}

func TestSlotsComeAtTheirPaceAndAreTheSame(t *testing.T) {
	unpaced := encode(run(t, "accounts=100,slots=50,slot_time=0", nil))
	n := 0
	paced(t, "accounts=100,slots=50", nil, func(e ledger.Event, after time.Duration) {
		if b, ok := e.(*ledger.Block); ok && after != time.Duration(b.Slot)*defaultSlot {
			t.Errorf("slot %d came after %v, want %v", b.Slot, after, time.Duration(b.Slot)*defaultSlot)
		}
		if n == len(unpaced) || string(codec.AppendEvent(nil, e)) != unpaced[n] {
			t.Fatalf("event %d differs from that of a run without a pace: %+v", n, e)
		}
		n++
	})
}

// What was shown before a restart is shown again at once, and what is new when its slot comes.
func TestWhatWasShownIsNotWaitedForAgain(t *testing.T) {
	const spec = "accounts=100,fork_rate=0,skip_rate=0,finality=0,slots=60"
	from := books(t, run(t, spec+",slot_time=0", nil))[10].resumePoint()
	from.Newest = from.Slot + 30
	paced(t, spec, from, func(e ledger.Event, after time.Duration) {
		if b, ok := e.(*ledger.Block); ok {
			if want := time.Duration(max(b.Slot, from.Newest)-from.Newest) * defaultSlot; after != want {
				t.Errorf("slot %d came after %v, want %v", b.Slot, after, want)
			}
		}
	})
}

func TestABusyReceiverIsNotFloodedAfterwards(t *testing.T) {
	at := make(map[ledger.Slot]time.Duration)
	paced(t, "accounts=100,skip_rate=0,slots=8", nil, func(e ledger.Event, after time.Duration) {
		if b, ok := e.(*ledger.Block); ok {
			at[b.Slot] = after
			if b.Slot == 2 {
				time.Sleep(10 * time.Second) // of the bubble's own clock
			}
		}
	})
	if late := at[8] - at[4]; late != 4*defaultSlot {
		t.Errorf("slots 4 to 8 came within %v, want %v: %v", late, 4*defaultSlot, at)
	}
}

// TestRunEndsWithItsContext at once, whether it waits for a slot or goes flat out.
func TestRunEndsWithItsContext(t *testing.T) {
	for _, spec := range []string{"accounts=100", "accounts=100,slot_time=0"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var stopped time.Time
			err := open(t, spec).Run(ctx, nil, func(_ context.Context, e ledger.Event) error {
				if slotOf(e) == 3 {
					stopped = time.Now()
					cancel()
				}
				return nil
			})
			if !errors.Is(err, context.Canceled) || time.Since(stopped) != 0 {
				t.Errorf("%s: Run ended %v after its context with %v", spec, time.Since(stopped), err)
			}
		})
	}
}

func TestRunReturnsTheErrorOfEmit(t *testing.T) {
	full := errors.New("no room")
	for n := range len(run(t, "accounts=100,slot_time=0,slots=40", nil)) {
		emitted := 0
		err := open(t, "accounts=100,slot_time=0").Run(t.Context(), nil, func(context.Context, ledger.Event) error {
			if emitted++; emitted > n {
				return full
			}
			return nil
		})
		if err != full || emitted != n+1 {
			t.Errorf("event %d: Run: %v, %d events after it, want %v as it is", n, err, emitted-n-1, full)
		}
	}
}
