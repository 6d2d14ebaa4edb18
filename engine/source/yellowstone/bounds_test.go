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
				if n := held(&a.slots); n > 2*keptNamed || a.Unfinished() > 0 {
					t.Errorf("%s, status %d: %d slots, %d of them open", name, status, n, a.Unfinished())
				}
				newest := a.try(&Update{Slot: slot(many - 1)})
				ledgertest.Equal(t, newest != nil, status == Dead, "%s, status %d: whether the newest is remembered", name, status)
			}
		}
	}
}

func held(r *recentSlots) int { return len(r.newer) + len(r.older) }

// The slots that were named longest ago are dropped, whole or not, and one that is named again is new.
func TestTheSlotsNamedLongestAgoAreDropped(t *testing.T) {
	a, _ := tell(t, "live")
	for n := range ledger.Slot(4 * keptNamed) {
		mustFeed(t, a, statusOf(n, CreatedBank))
		if all := held(&a.slots); all < int(min(n, keptNamed)) || all > 2*keptNamed {
			t.Fatalf("%d are held of %d", all, n)
		}
	}
	for slot, want := range map[ledger.Slot]bool{0: false, 1: false, 3 * keptNamed: true, 4*keptNamed - 1: true} {
		ledgertest.Equal(t, a.Expects(slot), want, "whether slot %d is held", slot)
	}
	if n := a.Unfinished(); n != held(&a.slots) || a.Counts.Dropped != uint64(4*keptNamed-n) || a.bytes != n*assemblyBytes {
		t.Errorf("%d are open of %d, %d bytes, %+v", n, held(&a.slots), a.bytes, a.Counts)
	}
}

// A server that begins one block again and again is left.
func TestTheBlocksOfASlotAreBounded(t *testing.T) {
	a, _ := tell(t, "live")
	for bank := range uint64(keptTries) {
		mustFeed(t, a, Update{Kind: Slot, Slot: 100, Status: CreatedBank, Bank: bank + 1})
	}
	ledgertest.Equal(t, feed(t, a, Update{Kind: Slot, Slot: 100, Status: CreatedBank, Bank: 99}), errTooMuch, "the error")
}
