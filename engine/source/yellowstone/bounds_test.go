package yellowstone

import (
	"fmt"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// F22, F27: whatever a stream says of slots that it shows nothing of, and in whatever order, what is remembered of it is
// bounded, and so is what each word costs.
func TestStatusesOfUnknownSlotsAreBounded(t *testing.T) {
	for status, isHeld := range map[string][2]bool{"confirmed": {false, false}, "shred": {false, true}, "dead": {true, true}} {
		for i, script := range []string{"", "live"} {
			for _, apart := range []int{1, 1 << 40} {
				told := []string{script}
				for n := range 2 * maxSlots {
					told = append(told, fmt.Sprintf("%s@%d", status, n*apart))
				}
				a, c := tell(t, strings.Join(told, " "))
				ledgertest.Holds(t, len(a.slots) <= maxSlots+1 && (c.err == errTooMuch) == isHeld[i], "%s %s: %v, %d slots", script, status, c.err, len(a.slots))
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
	if a.Unfinished() != keptTries || a.Counts.Dropped != 2*keptTries || a.bytes != keptTries*assemblyBytes {
		t.Errorf("%d are open with %d bytes, %+v", a.Unfinished(), a.bytes, a.Counts)
	}
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
		mustFeed(t, a, accountOf(100, w, version), accountOf(100, w, 0), Update{Kind: Transaction, Slot: 100, Transaction: ledger.Transaction{Accounts: make([]ledger.Pubkey, 3)}}, vote)
	}
	ledgertest.Equal(t, a.bytes, assemblyBytes+accountBytes+data.SizeBytes()+2*transactionBytes+3*32, "bytes that are held")
	mustFeed(t, a, headOf(100, Head{Hash: hashAt(100, 0), ParentSlot: 99}), statusOf(100, Processed))
	ledgertest.Equal(t, len(c.events), 1, "blocks")
}
