package yellowstone

import (
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// F22, F27: whatever a stream says of slots that it shows nothing of, and in whatever order, what is remembered of it is
// bounded, and so is what each word costs.
func TestStatusesOfUnknownSlotsAreBounded(t *testing.T) {
	for name, slot := range map[string]func(n int) ledger.Slot{
		"ascending": func(n int) ledger.Slot { return ledger.Slot(1_000_000 + n) },
		"far apart": func(n int) ledger.Slot { return ledger.Slot(n%2)<<60 + ledger.Slot(n*1000) },
	} {
		for _, status := range []SlotStatus{Confirmed, FirstShred, Dead} {
			for _, live := range []bool{false, true} {
				a := NewAssembler(discard)
				a.Live = live
				var err error
				for n := 0; n < 2*maxSlots && err == nil; n++ {
					err = a.Take(t.Context(), &Update{Kind: Slot, Slot: slot(n), Status: status})
				}
				if isHeld := status == Dead || live && status == FirstShred; len(a.slots) > maxSlots+1 || isHeld != (err == errTooMuch) {
					t.Errorf("%s, status %d, live %v: %v, %d slots", name, status, live, err, len(a.slots))
				}
			}
		}
	}
}

// The oldest bank of a slot that a server begins again and again is dropped, and what became of the first ones is forgotten.
func TestTheBanksOfASlotAreBounded(t *testing.T) {
	a, _ := tell(t, "live")
	for bank := range uint64(3 * keptTries) {
		mustFeed(t, a, Update{Kind: Slot, Slot: 100, Status: CreatedBank, Bank: bank + 1})
	}
	ledgertest.Equal(t, a.Unfinished(), keptTries, "tries that are open")
	ledgertest.Equal(t, a.bytes, keptTries*assemblyBytes, "bytes that they take")
	for bank := range uint64(3 * keptTries) {
		mustFeed(t, a, Update{Kind: Slot, Slot: 100, Status: Dead, Bank: bank + 1})
	}
	ledgertest.Equal(t, len(a.slots[100].over), keptTries, "tries that are over and held")
}

// Of an account that a block writes again and again the newest write alone is held, and counts.
func TestWritesThatAreReplacedTakeNoRoom(t *testing.T) {
	a, c := tell(t, "alone")
	data, vote := ledger.NewData(make([]byte, 1<<20)), words["vote"][0]
	for version := range uint64(2 * maxBytes >> 20) {
		w := ledger.AccountWrite{Pubkey: key(1), Lamports: 1, Data: data, Known: ledger.FieldsAll | ledger.FieldData}
		mustFeed(t, a, accountOf(100, w, version), accountOf(100, w, 0), Update{Kind: Transaction, Slot: 100}, vote)
	}
	ledgertest.Equal(t, a.bytes, assemblyBytes+accountBytes+data.SizeBytes()+2*transactionBytes, "bytes that are held")
	mustFeed(t, a, headOf(100, ledger.Block{Blockhash: hashAt(100, 0), ParentSlot: 99}), statusOf(100, Processed))
	ledgertest.Equal(t, len(c.events), 1, "blocks")
}
