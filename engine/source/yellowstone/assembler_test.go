package yellowstone

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"ledgerd/engine/ledger"
)

func discard(context.Context, ledger.Event) error { return nil }

// told is a block as a validator tells of it: its last writes and transactions, and what must come
// of them.
type told struct {
	slot    ledger.Slot
	head    Head
	updates []wire
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
		b.updates = append(b.updates, accountMessage(slot, w, uint64(100+n), nil, false))
	}
	for n := range transactions {
		t := ledger.Transaction{
			Signature: ledger.Signature{byte(slot), byte(n)}, Index: uint32(n), Fee: ledger.Some(ledger.Lamports(n)),
			Success: ledger.Some(n%3 > 0), Accounts: []ledger.Pubkey{key(1), key(2)},
		}
		b.updates = append(b.updates, transactionMessage(slot, t, n%2))
		b.want.AddTransaction(t)
	}
	for _, w := range last {
		b.want.Accounts = append(b.want.Accounts, w)
	}
	return b
}

func (b *told) messages() []wire {
	return slices.Concat(b.updates, []wire{headMessage(b.slot, b.head), slotMessage(b.slot, Processed)})
}

// collector takes events.
type collector struct{ events []ledger.Event }

func (c *collector) emit(_ context.Context, e ledger.Event) error {
	c.events = append(c.events, e)
	return nil
}

func feed(t *testing.T, a *Assembler, messages ...wire) error {
	t.Helper()
	for _, m := range messages {
		var u Update
		if err := Decode(m, &u); err != nil {
			t.Fatal(err)
		}
		if err := a.Take(t.Context(), &u); err != nil {
			return err
		}
	}
	return nil
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
		var c collector
		a := NewAssembler(c.emit)
		a.HasTransactions = true
		want := map[ledger.Slot]*ledger.Block{}
		var messages []wire
		for slot := ledger.Slot(100); slot < 104; slot++ {
			b := aBlock(r, slot, r.IntN(6))
			want[slot] = b.want
			all := b.messages()[:len(b.updates)+1] // without the status
			messages = append(messages, all...)
			for range r.IntN(5) {
				messages = append(messages, all[r.IntN(len(all))])
			}
		}
		r.Shuffle(len(messages), func(i, j int) { messages[i], messages[j] = messages[j], messages[i] })
		if err := feed(t, a, messages...); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(c.events) > 0 {
			t.Fatalf("seed %d: %v came before its slot was processed", seed, c.events[0])
		}
		for _, n := range r.Perm(4) {
			if err := feed(t, a, slotMessage(ledger.Slot(100+n), Processed)); err != nil {
				t.Fatal(err)
			}
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

// outline tells events in short.
func outline(events []ledger.Event) (lines []string) {
	for _, e := range events {
		switch e := e.(type) {
		case *ledger.Block:
			lines = append(lines, fmt.Sprintf("block %d.%d of %d/%d", e.Slot, e.Blockhash[1], len(e.Transactions), e.TransactionCount))
		case *ledger.SlotStatus:
			lines = append(lines, fmt.Sprintf("%s %d known %v", e.Status, e.Slot, e.Blockhash.Known))
		case *ledger.BaseState:
			lines = append(lines, fmt.Sprintf("base %d of %d", e.Slot, len(e.Accounts)))
		}
	}
	return lines
}

func TestSlotsEndAsTheStreamSays(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	b := aBlock(r, 100, 2)
	head, processed := headMessage(100, b.head), slotMessage(100, Processed)
	one, two := b.updates[len(b.updates)-2], b.updates[len(b.updates)-1]
	other := b.head
	other.Hash[1] = 2
	confirmed, finalized, dead := slotMessage(100, Confirmed), slotMessage(100, Finalized), slotMessage(100, Dead)
	late := accountMessage(100, ledger.AccountWrite{Pubkey: key(77), Lamports: 1}, 999, nil, false)
	base := func(slot ledger.Slot) wire {
		return accountMessage(slot, ledger.AccountWrite{Pubkey: key(1), Lamports: 1}, 1, nil, true)
	}
	whole := "block 100.1 of 2/2"
	tests := map[string]struct {
		messages []wire
		want     []string
		err      string
	}{
		"processed before its last transaction": {[]wire{head, one, processed, two}, []string{whole}, ""},
		"head at last":                          {[]wire{one, processed, two, head}, []string{whole}, ""},
		"confirmed":                             {[]wire{one, two, head, processed, confirmed}, []string{whole, "confirmed 100 known true"}, ""},
		"confirmed before it is whole":          {[]wire{one, head, confirmed}, []string{"block 100.1 of 1/2", "confirmed 100 known true"}, ""},
		"confirmed before its head":             {[]wire{one, two, confirmed, head}, []string{whole, "confirmed 100 known true"}, ""},
		"finalized before its head":             {[]wire{confirmed, one, two, finalized, head}, []string{"confirmed 100 known false", whole, "finalized 100 known true"}, ""},
		"of a slot before the stream":           {[]wire{confirmed}, []string{"confirmed 100 known false"}, ""},
		"dead before it is whole":               {[]wire{one, dead, two, head, processed, confirmed}, []string{"dead 100 known false"}, ""},
		"dead after":                            {[]wire{one, two, head, processed, dead, dead}, []string{whole, "dead 100 known true"}, ""},
		"dead, and tried again":                 {[]wire{dead, slotMessage(100, CreatedBank), one, two, head, processed}, []string{"dead 100 known false", whole}, ""},
		"a write after the block":               {[]wire{one, two, head, processed, late}, []string{whole}, ""},
		"all of it twice":                       {[]wire{one, two, head, processed, one, two, head, processed, confirmed}, []string{whole, "confirmed 100 known true"}, ""},
		"two heads":                             {[]wire{one, head, headMessage(100, other)}, nil, "the stream shows two blocks at slot 100"},
		"two heads, one after the block":        {[]wire{one, two, head, processed, headMessage(100, other)}, []string{whole}, "the stream shows two blocks at slot 100"},
		"accounts of the start":                 {[]wire{base(7), base(7), base(8), one}, []string{"base 7 of 2", "base 8 of 1"}, ""},
		"first shreds":                          {[]wire{slotMessage(100, FirstShred), slotMessage(100, Completed), slotMessage(100, 99)}, nil, ""},
	}
	for name, tt := range tests {
		var c collector
		a := NewAssembler(c.emit)
		a.HasTransactions = true
		err := feed(t, a, tt.messages...)
		if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%s: %v, want %q", name, err, tt.err)
		}
		if got := outline(c.events); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// A stream that never has transactions does not wait for them.
func TestStreamWithoutTransactionsWaitsForNone(t *testing.T) {
	b := aBlock(rand.New(rand.NewPCG(1, 1)), 100, 3)
	var c collector
	a := NewAssembler(c.emit)
	if err := feed(t, a, slices.Concat(b.updates[:6], b.messages()[len(b.updates):])...); err != nil {
		t.Fatal(err)
	}
	if got := outline(c.events); !slices.Equal(got, []string{"block 100.1 of 0/3"}) {
		t.Errorf("%q", got)
	}
}

// A stream that begins again shows what it showed before, or another block of that slot.
func TestStreamThatBeginsAgain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	b, next := aBlock(r, 100, 2), aBlock(r, 101, 2)
	other := aBlock(r, 100, 2)
	other.head.Hash[1] = 2
	var c collector
	a := NewAssembler(c.emit)
	a.HasTransactions = true
	if err := feed(t, a, slices.Concat(b.messages(), next.updates[:5])...); err != nil {
		t.Fatal(err)
	}
	a.Reconnected()
	if err := feed(t, a, slices.Concat(b.messages()[1:], next.messages(), []wire{slotMessage(100, Confirmed)})...); err != nil {
		t.Fatal(err)
	}
	a.Reconnected()
	if err := feed(t, a, other.messages()...); err != nil {
		t.Fatal(err)
	}
	whole := "block 100.1 of 2/2"
	want := []string{whole, whole, "block 101.1 of 2/2", "confirmed 100 known true", "block 100.2 of 2/2"}
	if got := outline(c.events); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := c.events[2].(*ledger.Block); !sameBlock(got, next.want) {
		t.Errorf("got %+v, want %+v", got, next.want)
	}
}

// What never becomes whole does not grow without bound.
func TestWhatIsNotWholeIsBounded(t *testing.T) {
	a := NewAssembler(discard)
	for slot := ledger.Slot(1); slot <= 10*keptSlots; slot++ {
		b := aBlock(rand.New(rand.NewPCG(1, 1)), slot, 1)
		if err := feed(t, a, b.updates...); err != nil {
			t.Fatal(err)
		}
		if slot%2 == 0 {
			if err := feed(t, a, slotMessage(slot, Dead)); err != nil {
				t.Fatal(err)
			}
		}
		if slot%100 == 0 {
			if err := feed(t, a, slotMessage(slot, Finalized)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(a.slots) > keptSlots+100 || a.done.len() > keptEndings || a.Counts.Dropped == 0 {
		t.Errorf("%d slots and %d endings are held, %+v", len(a.slots), a.done.len(), a.Counts)
	}
	a.bytes = maxBytes
	if err := feed(t, a, aBlock(rand.New(rand.NewPCG(1, 1)), 1<<30, 1).updates...); err != errTooMuch {
		t.Errorf("%v, want %v", err, errTooMuch)
	}
}

// BenchmarkStream decodes and assembles blocks of a busy network: 3,000 writes, half of them of
// token accounts, and 1,600 transactions.
func BenchmarkStream(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	block := aBlock(r, 100, 0)
	block.head.Transactions = 1600
	for n := range 3000 {
		w := ledger.AccountWrite{Pubkey: ledger.Pubkey{byte(n), byte(n >> 8)}, Lamports: 1, Owner: key(200)}
		data := make([]byte, 80)
		if n%2 == 0 {
			w.Owner, data = ledger.TokenProgram, tokenData(key(1), key(2), byte(n))
		}
		block.updates = append(block.updates, accountMessage(100, w, uint64(n), data, false))
	}
	for n := range 1600 {
		t := ledger.Transaction{Signature: ledger.Signature{byte(n), byte(n >> 8)}, Index: uint32(n), Success: ledger.Some(true)}
		for k := range 12 {
			t.Accounts = append(t.Accounts, key(byte(n+k)))
		}
		block.updates = append(block.updates, transactionMessage(100, t, 4))
	}
	messages := block.messages()
	size := 0
	for _, m := range messages {
		size += len(m)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		a := NewAssembler(discard)
		a.HasTransactions = true
		var u Update
		for _, m := range messages {
			if err := Decode(m, &u); err != nil {
				b.Fatal(err)
			}
			if err := a.Take(b.Context(), &u); err != nil {
				b.Fatal(err)
			}
		}
		if a.Counts.Sealed != 1 {
			b.Fatal("the block was not sealed")
		}
	}
	b.ReportMetric(3000*float64(b.N)/b.Elapsed().Seconds(), "updates/s")
}

// A genesis block names itself for its parent, and heads may name each other.
func TestHeadsThatNameThemselvesForTheirParentsAreSealedOnce(t *testing.T) {
	h0, h9 := ledger.Hash{1}, ledger.Hash{2}
	for _, live := range []bool{false, true} {
		for name, messages := range map[string][]wire{
			"itself": {slotMessage(0, CreatedBank), headMessage(0, Head{Hash: h0}), slotMessage(0, Confirmed)},
			"each other": {
				slotMessage(0, CreatedBank), slotMessage(9, CreatedBank),
				headMessage(0, Head{Hash: h0, ParentSlot: 9, ParentHash: ledger.Some(h9)}),
				headMessage(9, Head{Hash: h9, ParentSlot: 0, ParentHash: ledger.Some(h0)}), slotMessage(9, Confirmed),
			},
		} {
			sealed := map[ledger.Slot]int{}
			a := NewAssembler(func(_ context.Context, e ledger.Event) error {
				if b, ok := e.(*ledger.Block); ok {
					sealed[b.Slot]++
				}
				return nil
			})
			a.Live = live
			if err := feed(t, a, messages...); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for slot, times := range sealed {
				if times != 1 {
					t.Errorf("%s: slot %d is sealed %d times", name, slot, times)
				}
			}
			if len(sealed) == 0 {
				t.Errorf("%s: nothing is sealed", name)
			}
		}
	}
}
