package yellowstone

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// A server that counts more transactions than it sends, also when it is asked again, is believed.
func TestCountsThatNeverComeTrueAreGivenUp(t *testing.T) {
	a, _ := tell(t, "live")
	asked := 0
	for slot := ledger.Slot(100); slot < 110; slot++ {
		b := aBlock(rand.New(rand.NewPCG(1, 1)), slot, 2)
		b.head.Transactions = 3
		confirmed := []Update{statusOf(slot, Confirmed), statusOf(slot+1, Confirmed)}
		messages := slices.Concat([]Update{statusOf(slot, CreatedBank)}, b.whole(), confirmed)
		for err := feed(t, a, messages...); err != nil; err = feed(t, a, messages...) {
			if want := (&ShortError{slot, 2, 3}); !reflect.DeepEqual(err, error(want)) {
				t.Fatalf("slot %d: %v, want %v", slot, err, want)
			}
			asked++
			a.Reconnected()
		}
	}
	if asked != believedMiscounts || a.Counts.Sealed != 10 || a.Counts.Incomplete != 10 {
		t.Errorf("asked %d times, %+v", asked, a.Counts)
	}
}

// Whatever a live stream says, it is taken or refused, and what is held stays within its bounds.
func TestLiveStreamsOfAnything(t *testing.T) {
	for seed := range uint64(ledgertest.Sample(300, 60, 15)) {
		r := rand.New(rand.NewPCG(seed, 3))
		a := NewAssembler(discard)
		a.Live, a.HasTransactions = true, r.IntN(2) == 0
		for range 400 {
			b := aBlock(r, ledger.Slot(100+r.IntN(8)), r.IntN(4))
			b.head.Hash[2] = byte(r.IntN(2))
			messages := append(b.whole(), statusOf(b.want.Slot, SlotStatus(r.IntN(8))))
			u := messages[r.IntN(len(messages))]
			u.Bank = uint64(r.IntN(3))
			if err := a.Take(t.Context(), &u); err != nil {
				a.Reconnected()
			}
		}
		held := 0
		for _, s := range a.slots {
			held += s.bytes
		}
		ledgertest.Equal(t, a.bytes, held, "seed %d: bytes that are counted", seed)
	}
}
