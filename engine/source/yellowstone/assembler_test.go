package yellowstone

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/ledger/ledgertest"
)

// told is a block as a validator tells of it: its last writes and transactions, and what must come
// of them.
type told struct {
	head    Head
	updates []Update
	want    *ledger.Block
}

// aBlock makes up a block with so many transactions, and twice as many writes of half as many accounts.
func aBlock(r *rand.Rand, slot ledger.Slot, transactions int) *told {
	b := &told{head: Head{
		Hash: ledger.Hash{byte(slot), 1}, ParentSlot: slot - 1, ParentHash: ledger.Some(ledger.Hash{byte(slot) - 1, 1}),
		Time: ledger.Some(int64(slot)), Height: ledger.Some(uint64(slot)), Transactions: uint64(transactions),
	}}
	b.want = &ledger.Block{
		Slot: slot, ParentSlot: slot - 1, Blockhash: b.head.Hash, PreviousBlockhash: b.head.ParentHash,
		Time: b.head.Time, Height: b.head.Height, TransactionCount: uint64(transactions),
	}
	last := map[ledger.Pubkey]ledger.AccountWrite{}
	for n := range 2 * transactions {
		w := ledger.AccountWrite{
			Pubkey: key(byte(r.IntN(max(1, transactions/2)))), Lamports: ledger.Lamports(1 + n), Owner: key(200), Known: ledger.FieldsAll,
		}
		last[w.Pubkey] = w
		b.updates = append(b.updates, accountOf(slot, w, uint64(100+n)))
	}
	for n := range transactions {
		t := ledger.Transaction{
			Signature: ledger.Signature{byte(slot), byte(n)}, Index: uint32(n), Fee: ledger.Some(ledger.Lamports(n)),
			Success: ledger.Some(n%3 > 0), Accounts: []ledger.Pubkey{key(1), key(2)},
		}
		if !t.Success.Value {
			t.Err = `"AccountInUse"`
		}
		b.updates = append(b.updates, Update{Kind: Transaction, Slot: slot, Transaction: t})
		b.want.AddTransaction(t)
	}
	for _, w := range last {
		b.want.Accounts = append(b.want.Accounts, w)
	}
	return b
}

// whole returns all that is told of the block up to its being processed.
func (b *told) whole() []Update {
	return slices.Concat(b.updates, []Update{headOf(b.want.Slot, b.head), statusOf(b.want.Slot, Processed)})
}

// sameBlock compares blocks whose writes, one of each account, come in any order.
func sameBlock(got, want *ledger.Block) bool {
	g, w := *got, *want
	byKey := func(x, y ledger.AccountWrite) int { return x.Pubkey.Compare(&y.Pubkey) }
	g.Accounts, w.Accounts = slices.SortedFunc(slices.Values(g.Accounts), byKey), slices.SortedFunc(slices.Values(w.Accounts), byKey)
	if len(g.Transactions) == 0 && len(w.Transactions) == 0 {
		g.Transactions, w.Transactions = nil, nil
	}
	return reflect.DeepEqual(g, w)
}

// F20, F22: whatever order the updates of some slots come in, and however often, each block comes once, whole.
func TestBlocksAreWholeInAnyOrder(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		a, c := tell(t, "")
		want := map[ledger.Slot]*ledger.Block{}
		var messages []Update
		for slot := ledger.Slot(100); slot < 104; slot++ {
			b := aBlock(r, slot, r.IntN(6))
			want[slot] = b.want
			all := b.whole()[:len(b.updates)+1] // without the status
			messages = append(messages, all...)
			for range r.IntN(5) {
				messages = append(messages, all[r.IntN(len(all))])
			}
		}
		r.Shuffle(len(messages), func(i, j int) { messages[i], messages[j] = messages[j], messages[i] })
		mustFeed(t, a, messages...)
		if len(c.events) > 0 {
			t.Fatalf("seed %d: %v came before its slot was processed", seed, c.events[0])
		}
		for _, n := range r.Perm(4) {
			mustFeed(t, a, statusOf(ledger.Slot(100+n), Processed))
			got, ok := c.events[len(c.events)-1].(*ledger.Block)
			if !ok || !sameBlock(got, want[ledger.Slot(100+n)]) {
				t.Fatalf("seed %d: got %+v, want %+v", seed, got, want[ledger.Slot(100+n)])
			}
		}
		if len(c.events) != 4 || a.Unfinished() != 0 || a.bytes != 0 || a.Counts.Sealed != 4 {
			t.Fatalf("seed %d: %d events, %d slots left with %d bytes, %+v", seed, len(c.events), a.Unfinished(), a.bytes, a.Counts)
		}
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
			if a.Counts.Lost > 0 {
				got = append(got, fmt.Sprintf("%d lost", a.Counts.Lost))
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
	if len(a.slots) > keptSlots+100 || a.Counts.Dropped == 0 {
		t.Errorf("%d slots are held, %+v", len(a.slots), a.Counts)
	}
	a.bytes = maxBytes
	ledgertest.Equal(t, feed(t, a, aBlock(rand.New(rand.NewPCG(1, 1)), 1<<30, 1).updates...), errTooMuch, "the error")
}

// What is kept of late writes is bounded: the accounts of a block, and the blocks.
func TestLateWritesAreBounded(t *testing.T) {
	a, _ := tell(t, "alone 100<99")
	for n := range 2 * keptLate {
		mustFeed(t, a, accountOf(100, ledger.AccountWrite{Pubkey: ledger.Pubkey{77, byte(n), byte(n >> 8)}, Lamports: 1}, 11))
	}
	ledgertest.Equal(t, len(a.sealed[0].late.accounts), keptLate, "accounts that are kept")
	ledgertest.Equal(t, a.Counts.Late, 2*keptLate, "writes that were late")
	script := "live alone"
	for slot := range keptBlocks + 1 {
		script += fmt.Sprintf(" %d<%d", 100+slot, 99+slot)
	}
	a, c := tell(t, script+" late 133<132=2")
	if got := c.outline(); len(a.sealed) != keptBlocks || a.Counts.Late != 0 || got[len(got)-1] != "133 2=133" {
		t.Errorf("of %d blocks a write that is too late to tell was taken: %s", len(a.sealed), got)
	}
}
