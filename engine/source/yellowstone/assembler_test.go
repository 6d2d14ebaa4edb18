package yellowstone

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/ledger/ledgertest"
)

// told is a block as a validator tells of it: its writes and transactions.
type told struct {
	slot    ledger.Slot
	head    ledger.Block
	updates []Update
}

// aBlock makes up a block with so many transactions, and twice as many writes of half as many accounts.
func aBlock(r *rand.Rand, slot ledger.Slot, transactions int) *told {
	b := &told{slot: slot, head: ledger.Block{
		Blockhash: ledger.Hash{byte(slot), 1}, ParentSlot: slot - 1, PreviousBlockhash: ledger.Some(ledger.Hash{byte(slot) - 1, 1}),
		Time: ledger.Some(int64(slot)), Height: ledger.Some(uint64(slot)), TransactionCount: uint64(transactions),
	}}
	for n := range 2 * transactions {
		w := ledger.AccountWrite{
			Pubkey: key(byte(r.IntN(max(1, transactions/2)))), Lamports: ledger.Lamports(1 + n), Owner: key(200), Known: ledger.FieldsAll,
		}
		b.updates = append(b.updates, accountOf(slot, w, uint64(100+n)))
	}
	for n := range transactions {
		b.updates = append(b.updates, Update{Kind: Transaction, Slot: slot, Transaction: ledger.Transaction{
			Signature: ledger.Signature{byte(slot), byte(n)}, Index: uint32(n), Fee: ledger.Some(ledger.Lamports(n)),
			Success: ledger.Some(n%3 > 0), Accounts: []ledger.Pubkey{key(1), key(2)},
		}})
	}
	return b
}

// whole returns all that is told of the block up to its being processed.
func (b *told) whole() []Update {
	return slices.Concat(b.updates, []Update{headOf(b.slot, b.head), statusOf(b.slot, Processed)})
}

// F20, F22: whatever order the updates of some slots come in, and however often, each block comes once, whole: as it does in their own order.
func TestBlocksAreWholeInAnyOrder(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		plain, want := tell(t, "")
		a, c := tell(t, "")
		var messages []Update
		for slot := ledger.Slot(100); slot < 104; slot++ {
			b := aBlock(r, slot, r.IntN(6))
			mustFeed(t, plain, b.whole()...)
			all := b.whole()[:len(b.updates)+1] // without the status
			messages = append(messages, all...)
			for range r.IntN(5) {
				messages = append(messages, all[r.IntN(len(all))])
			}
		}
		r.Shuffle(len(messages), func(i, j int) { messages[i], messages[j] = messages[j], messages[i] })
		mustFeed(t, a, messages...)
		ledgertest.Equal(t, len(c.events), 0, "seed %d: what came before slots were processed", seed)
		for slot := ledger.Slot(100); slot < 104; slot++ {
			mustFeed(t, a, statusOf(slot, Processed))
		}
		for _, e := range append(c.events, want.events...) {
			slices.SortFunc(e.(*ledger.Block).Accounts, func(x, y ledger.AccountWrite) int { return x.Pubkey.Compare(&y.Pubkey) })
		}
		ledgertest.Equal(t, c.events, want.events, "seed %d: the blocks", seed)
		ledgertest.Equal(t, fmt.Sprint(len(c.events), a.Counts.Sealed, a.Unfinished(), a.bytes), "4 4 0 0", "seed %d: events, blocks, what is left, and its bytes", seed)
	}
}

// F20, F22, F29: updates of a slot in an odd order, twice, or of two blocks. An entry of testdata/slots.txt is a name, a script for
// tell and what comes of it; "both" is "alone", without and with "live".
func TestSlotsEndAsTheStreamSays(t *testing.T) {
	for _, lines := range datatest.Entries(t, "slots.txt") {
		name, want, scripts := lines[0], strings.TrimSpace(strings.TrimPrefix(lines[2], ">")), lines[1:2]
		if script, both := strings.CutPrefix(lines[1], "both "); both {
			scripts = []string{"alone " + script, "live alone " + script}
		}
		for _, script := range scripts {
			a, c := tell(t, script)
			got := c.outline()
			if a.Reconnected(); a.Counts.Partial > 0 {
				got = append(got, fmt.Sprintf("%d in part", a.Counts.Partial))
			}
			if a.Counts.Late > 0 {
				got = append(got, fmt.Sprintf("%d late", a.Counts.Late))
			}
			if c.err != nil {
				got = append(got, c.err.Error())
			}
			ledgertest.Equal(t, strings.Join(got, ", "), want, "%s: %s", name, script)
		}
	}
}

// F22: what never becomes whole does not grow without bound.
func TestWhatIsNotWholeIsBounded(t *testing.T) {
	a := NewAssembler(discard)
	for slot := ledger.Slot(1); slot <= 10*keptSlots; slot++ {
		b := aBlock(rand.New(rand.NewPCG(1, 1)), slot, 1)
		mustFeed(t, a, b.updates...)
		if slot%2 == 0 {
			mustFeed(t, a, statusOf(slot, Dead))
		}
		if slot%100 == 0 {
			mustFeed(t, a, statusOf(slot, Finalized))
		}
	}
	ledgertest.Holds(t, len(a.slots) <= keptSlots+100, "%d slots are held", len(a.slots))
	ledgertest.Equal(t, a.bytes, heldBytes(a), "bytes that are counted")
	a.bytes = maxBytes
	ledgertest.Equal(t, feed(t, a, aBlock(rand.New(rand.NewPCG(1, 1)), 1<<30, 1).updates...), errTooMuch, "the error")
}

// A write is told from one that comes again only as long as the versions are kept of the block that it is late for.
func TestVersionsOfSomeBlocksAreKept(t *testing.T) {
	script := "alone"
	for n := range keptBlocks + 1 {
		script += fmt.Sprintf(" %d<%d", 100+n, 99+n)
	}
	a, _ := tell(t, script+" late@100 late@101")
	ledgertest.Equal(t, len(a.sealed), keptBlocks, "blocks whose versions are kept")
	ledgertest.Equal(t, a.Counts.Late, 1, "writes that are told to be late")
}
