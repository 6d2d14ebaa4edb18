package yellowstone

import (
	"testing"

	"ledgerd/engine/ledger"
)

// Whatever a stream says of slots that it shows nothing of, and in whatever order, what is remembered of it is
// bounded, and so is what each word costs.
func TestStatusesOfUnknownSlotsAreBounded(t *testing.T) {
	const many = 30_000
	orders := map[string]func(n int) ledger.Slot{
		"ascending":  func(n int) ledger.Slot { return ledger.Slot(1_000_000 + n) },
		"descending": func(n int) ledger.Slot { return ledger.Slot(1_000_000 - n) },
		"far apart":  func(n int) ledger.Slot { return ledger.Slot(n%2)<<60 + ledger.Slot(n*1000) },
	}
	for name, slot := range orders {
		for _, status := range []SlotStatus{Confirmed, Dead} {
			for _, live := range []bool{false, true} {
				a := NewAssembler(discard)
				a.Live = live
				for n := range many {
					if err := a.Take(t.Context(), &Update{Kind: Slot, Slot: slot(n), Status: status}); err != nil {
						t.Fatal(err)
					}
				}
				if a.done.len() > keptEndings || a.frozen.len() > keptEndings || len(a.slots) > 0 {
					t.Errorf("%s, status %d: %d endings, %d frozen, %d slots", name, status, a.done.len(), a.frozen.len(), len(a.slots))
				}
				if _, ok := a.over(slot(many - 1)); ok != (status == Dead) {
					t.Errorf("%s, status %d: the newest is remembered: %v", name, status, ok)
				}
			}
		}
	}
}

// The oldest of what was told is forgotten, and what was told again of another stream is new.
func TestRecentForgetsTheOldest(t *testing.T) {
	r := newRecent[int]()
	for n := range keptEndings {
		r.put(ledger.Slot(n), n)
	}
	r.put(0, -1) // it is as old as before
	r.delete(1)  // and told again it is new
	r.put(1, -1)
	r.put(999_997, 7) // in the place that 1 left
	r.put(999_998, 7)
	for slot, want := range map[ledger.Slot]bool{0: false, 1: true, 2: false, 3: true, keptEndings - 1: true, 999_997: true, 999_998: true} {
		if _, ok := r.get(slot); ok != want {
			t.Errorf("slot %d is remembered: %v", slot, ok)
		}
	}
	if v, _ := r.get(1); v != -1 || r.len() > keptEndings {
		t.Errorf("slot 1 is %d, %d are held", v, r.len())
	}
	r.clear()
	if r.len() != 0 {
		t.Error("it is not empty")
	}
}
