package sim

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// paced runs a specification in a bubble and tells how long after its start each event came.
func paced(t *testing.T, spec string, from *ledger.ResumePoint, came func(e ledger.Event, after time.Duration)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		visit(t, spec, from, func(e ledger.Event) { came(e, time.Since(start)) })
	})
}

func TestSlotsComeAtTheirPaceAndAreThoseOfALongerRunWithoutOne(t *testing.T) {
	unpaced := run(t, "accounts=100,slots=90,slot_time=0", nil)
	n := 0
	paced(t, "accounts=100,slots=50", nil, func(e ledger.Event, after time.Duration) {
		if b, ok := e.(*ledger.Block); ok && after != time.Duration(b.Slot)*defaultSlot {
			t.Errorf("slot %d came after %v, want %v", b.Slot, after, time.Duration(b.Slot)*defaultSlot)
		}
		if !reflect.DeepEqual(e, unpaced[n]) {
			t.Fatalf("event %d differs from that of a longer run without a pace: %+v", n, e)
		}
		n++
	})
}

// What was shown before a restart is shown again at once, and what is new when its slot comes.
func TestWhatWasShownIsNotWaitedForAgain(t *testing.T) {
	const spec = "accounts=100,fork_rate=0,skip_rate=0,finality=0,slots=60"
	from := books(run(t, spec+",slot_time=0", nil))[10].resumePoint()
	from.Newest = from.Slot + 30
	paced(t, spec, from, func(e ledger.Event, after time.Duration) {
		if b, ok := e.(*ledger.Block); ok {
			ledgertest.Equal(t, after, time.Duration(max(b.Slot, from.Newest)-from.Newest)*defaultSlot, "slot %d came after", b.Slot)
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
	ledgertest.Equal(t, at[8]-at[4], 4*defaultSlot, "slots 4 to 8 of %v came within", at)
}

// At whatever event, Run ends at once with its context or the error of emit.
func TestRunEndsWithItsContextOrTheErrorOfEmit(t *testing.T) {
	full := errors.New("no room")
	for n := range len(run(t, "accounts=100,finality=4,slot_time=0,slots=12", nil)) {
		for _, want := range []error{full, context.Canceled} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				emitted, stopped := 0, time.Time{}
				err := open(t, "accounts=100,finality=4").Run(ctx, nil, func(context.Context, ledger.Event) error {
					if emitted++; emitted <= n {
						return nil
					}
					stopped = time.Now()
					if want == full {
						return full
					}
					cancel()
					return nil
				})
				if err != want || time.Since(stopped) != 0 || want == full && emitted != n+1 {
					t.Errorf("event %d: Run ended after %v and %d events with %v, want %v", n, time.Since(stopped), emitted, err, want)
				}
			})
		}
	}
}
