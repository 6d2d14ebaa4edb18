package yellowstone

import (
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// F22, F27: whatever a stream says of slots that it shows nothing of, and in whatever order, what is remembered of it is
// bounded, and so is what each word costs.
func TestStatusesOfUnknownSlotsAreBounded(t *testing.T) {
	const many = 30_000
	for name, slot := range map[string]func(n int) ledger.Slot{
		"ascending":  func(n int) ledger.Slot { return ledger.Slot(1_000_000 + n) },
		"descending": func(n int) ledger.Slot { return ledger.Slot(1_000_000 - n) },
		"far apart":  func(n int) ledger.Slot { return ledger.Slot(n%2)<<60 + ledger.Slot(n*1000) },
	} {
		for _, status := range []SlotStatus{Confirmed, Dead} {
			for _, live := range []bool{false, true} {
				a := NewAssembler(discard)
				a.Live = live
				for n := range many {
					must(t, a.Take(t.Context(), &Update{Kind: Slot, Slot: slot(n), Status: status}))
				}
				if held(&a.done) > 2*keptEndings || held(&a.frozen) > 2*keptEndings || len(a.slots) > 0 {
					t.Errorf("%s, status %d: %d endings, %d frozen, %d slots", name, status, held(&a.done), held(&a.frozen), len(a.slots))
				}
				_, ok := a.over(&Update{Slot: slot(many - 1)})
				ledgertest.Equal(t, ok, status == Dead, "%s, status %d: whether the newest is remembered", name, status)
			}
		}
	}
}

func held[V any](r *recent[V]) int { return len(r.newer) + len(r.older) }

// The oldest of what was told is forgotten, and what is told again is new.
func TestRecentForgetsTheOldest(t *testing.T) {
	var r recent[int]
	for n := range 4 * keptEndings {
		r.put(ledger.Slot(n), n)
		r.put(0, n)
		if all := held(&r); all < min(n, keptEndings) || all > 2*keptEndings {
			t.Fatalf("%d are held of %d", all, n)
		}
	}
	for slot, want := range map[ledger.Slot]bool{0: true, 1: false, 3 * keptEndings: true, 4*keptEndings - 1: true} {
		_, ok := r.get(slot)
		ledgertest.Equal(t, ok, want, "whether slot %d is remembered", slot)
	}
	if v, _ := r.get(0); v != 4*keptEndings-1 || r.contains(func(slot ledger.Slot, other int) bool { return slot == 0 && other != v }) {
		t.Errorf("slot 0 is %d, or an older value is there too", v)
	}
}
