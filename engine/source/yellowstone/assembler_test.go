package yellowstone

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
)

// told is a block as a validator tells of it: its last writes and transactions, and what must come
// of them.
type told struct {
	slot    ledger.Slot
	head    Head
	updates []Update
	want    *ledger.Block
}

// aBlock makes up a block with so many transactions, and twice as many writes of half as many accounts.
func aBlock(r *rand.Rand, slot ledger.Slot, transactions int) *told {
	b := &told{slot: slot, head: Head{
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
	return slices.Concat(b.updates, []Update{headOf(b.slot, b.head), statusOf(b.slot, Processed)})
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

// Whatever order the updates of some slots come in, and however often, each block comes once, whole.
func TestBlocksAreWholeInAnyOrder(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		a, c := newCollected(false)
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

func TestSlotsEndAsTheStreamSays(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	b := aBlock(r, 100, 2)
	head, processed := headOf(100, b.head), statusOf(100, Processed)
	one, two := b.updates[len(b.updates)-2], b.updates[len(b.updates)-1]
	other := b.head
	other.Hash[1] = 2
	confirmed, finalized, dead := statusOf(100, Confirmed), statusOf(100, Finalized), statusOf(100, Dead)
	late := accountOf(100, ledger.AccountWrite{Pubkey: key(77), Lamports: 1}, 999)
	base := func(slot ledger.Slot) Update { return Update{Kind: Account, Slot: slot, Startup: true} }
	whole := "block 100.1 of 2/2"
	tests := map[string]struct {
		messages []Update
		want     []string
		err      string
	}{
		"processed before its last transaction": {[]Update{head, one, processed, two}, []string{whole}, ""},
		"head at last":                          {[]Update{one, processed, two, head}, []string{whole}, ""},
		"confirmed":                             {[]Update{one, two, head, processed, confirmed}, []string{whole, "confirmed 100 known true"}, ""},
		"confirmed before it is whole":          {[]Update{one, head, confirmed}, []string{"block 100.1 of 1/2", "confirmed 100 known true"}, ""},
		"confirmed before its head":             {[]Update{one, two, confirmed, head}, []string{whole, "confirmed 100 known true"}, ""},
		"finalized before its head":             {[]Update{confirmed, one, two, finalized, head}, []string{"confirmed 100 known false", whole, "finalized 100 known true"}, ""},
		"of a slot before the stream":           {[]Update{confirmed}, []string{"confirmed 100 known false"}, ""},
		"dead before it is whole":               {[]Update{one, dead, two, head, processed, confirmed}, []string{"dead 100 known false"}, ""},
		"dead after":                            {[]Update{one, two, head, processed, dead, dead}, []string{whole, "dead 100 known true"}, ""},
		"dead, and tried again":                 {[]Update{dead, statusOf(100, CreatedBank), one, two, head, processed}, []string{"dead 100 known false", whole}, ""},
		"a write after the block":               {[]Update{one, two, head, processed, late}, []string{whole}, ""},
		"all of it twice":                       {[]Update{one, two, head, processed, one, two, head, processed, confirmed}, []string{whole, "confirmed 100 known true"}, ""},
		"two heads":                             {[]Update{one, head, headOf(100, other)}, nil, "the stream shows two blocks at slot 100"},
		"two heads, one after the block":        {[]Update{one, two, head, processed, headOf(100, other)}, []string{whole}, "the stream shows two blocks at slot 100"},
		"accounts of the start":                 {[]Update{base(7), base(7), base(8), one}, []string{"base 7 of 2", "base 8 of 1"}, ""},
		"first shreds":                          {[]Update{statusOf(100, FirstShred), statusOf(100, Completed), statusOf(100, 99)}, nil, ""},
	}
	for name, tt := range tests {
		a, c := newCollected(false)
		err := feed(t, a, tt.messages...)
		if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%s: %v, want %q", name, err, tt.err)
		}
		if got := c.outline(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// A stream that never has transactions does not wait for them.
func TestStreamWithoutTransactionsWaitsForNone(t *testing.T) {
	b := aBlock(rand.New(rand.NewPCG(1, 1)), 100, 3)
	a, c := newCollected(false)
	a.HasTransactions = false
	mustFeed(t, a, slices.Concat(b.updates[:6], b.whole()[len(b.updates):])...)
	c.check(t, "block 100.1 of 0/3")
}

// A stream that begins again shows what it showed before, or another block of that slot.
func TestStreamThatBeginsAgain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	b, next := aBlock(r, 100, 2), aBlock(r, 101, 2)
	other := aBlock(r, 100, 2)
	other.head.Hash[1] = 2
	a, c := newCollected(false)
	mustFeed(t, a, slices.Concat(b.whole(), next.updates[:5])...)
	a.Reconnected()
	mustFeed(t, a, slices.Concat(b.whole()[1:], next.whole(), []Update{statusOf(100, Confirmed)})...)
	a.Reconnected()
	mustFeed(t, a, other.whole()...)
	whole := "block 100.1 of 2/2"
	c.check(t, whole, whole, "block 101.1 of 2/2", "confirmed 100 known true", "block 100.2 of 2/2")
	if got := c.events[2].(*ledger.Block); !sameBlock(got, next.want) {
		t.Errorf("got %+v, want %+v", got, next.want)
	}
}

// What never becomes whole does not grow without bound.
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
	if len(a.slots) > keptSlots+100 || held(&a.done) > 2*keptEndings || a.Counts.Dropped == 0 {
		t.Errorf("%d slots and %d endings are held, %+v", len(a.slots), held(&a.done), a.Counts)
	}
	a.bytes = maxBytes
	if err := feed(t, a, aBlock(rand.New(rand.NewPCG(1, 1)), 1<<30, 1).updates...); err != errTooMuch {
		t.Errorf("%v, want %v", err, errTooMuch)
	}
}

// A genesis block names itself for its parent, and heads may name each other.
func TestHeadsThatNameThemselvesForTheirParentsAreSealedOnce(t *testing.T) {
	h0, h9 := ledger.Hash{1}, ledger.Hash{2}
	for _, live := range []bool{false, true} {
		for name, messages := range map[string][]Update{
			"itself": {statusOf(0, CreatedBank), headOf(0, Head{Hash: h0}), statusOf(0, Confirmed)},
			"each other": {
				statusOf(0, CreatedBank), statusOf(9, CreatedBank),
				headOf(0, Head{Hash: h0, ParentSlot: 9, ParentHash: ledger.Some(h9)}),
				headOf(9, Head{Hash: h9, ParentSlot: 0, ParentHash: ledger.Some(h0)}), statusOf(9, Confirmed),
			},
		} {
			a, c := newCollected(live)
			a.HasTransactions = false
			mustFeed(t, a, messages...)
			sealed := slices.DeleteFunc(c.outline(), func(line string) bool { return !strings.HasPrefix(line, "block") })
			slices.Sort(sealed)
			if len(sealed) == 0 || len(slices.Compact(slices.Clone(sealed))) < len(sealed) {
				t.Errorf("%s, live %v: sealed are %q", name, live, sealed)
			}
		}
	}
}
