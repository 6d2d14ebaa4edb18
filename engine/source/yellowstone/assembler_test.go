package yellowstone

import (
	"fmt"
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

// F20, F22, F29: updates of a slot in an odd order, twice, or of two blocks.
func TestSlotsEndAsTheStreamSays(t *testing.T) {
	const (
		whole, confirmed, unknown = "100.1 of 2/2", ", confirmed 100 known true", "confirmed 100 known false"
		finalized                 = ", finalized 100 known true"
		twoHeads                  = "the stream shows two blocks at slot 100"
		zero                      = "0, confirmed 0 known true"
	)
	tests := map[string]struct{ script, want string }{ // "both" is "alone", without and with "live"
		"processed before its last transaction": {"head one processed two", whole},
		"head at last":                          {"one processed two head", whole},
		"confirmed":                             {"one two head processed confirmed", whole + confirmed},
		"confirmed before it is whole":          {"one head confirmed", "100.1 of 1/2" + confirmed},
		"confirmed before its head":             {"one two confirmed head", whole + confirmed},
		"finalized before its head":             {"confirmed one two finalized head", unknown + ", " + whole + finalized},
		"of a slot before the stream":           {"confirmed", unknown},
		"dead before it is whole":               {"one dead two head processed confirmed", "dead 100 known false"},
		"dead after":                            {"one two head processed dead dead", whole + ", dead 100 known true"},
		"dead, and tried again":                 {"dead begin one two head processed", "dead 100 known false, " + whole},
		"all of it twice":                       {"one two head processed one two head processed confirmed", whole + confirmed},
		"two heads":                             {"one head other", twoHeads},
		"two heads, one after the block":        {"one two head processed other", whole + ", " + twoHeads},
		"accounts of the start":                 {"base7 base7 base8 one", "base 7 of 2, base 8 of 1"},
		"first shreds":                          {"shred completed unknown", ""},
		"no transactions ever":                  {"alone writes head processed", "100.1 of 0/2 0=4"},
		"the stream begins again": {
			"one two head processed some again two head processed one next processed@101 confirmed " +
				"again one two other processed",
			whole + ", " + whole + ", 101.1 of 2/2 0=4" + confirmed + ", 100.2 of 2/2",
		},
		// A genesis block names itself for its parent, and heads may name each other.
		"its own parent":      {"both begin@0 itself confirmed@0", zero},
		"parents in a circle": {"both begin@0 begin@9 each-other confirmed@9", zero + ", 9, confirmed 9 known true"},
		// A live stream begins in the middle of some slots.
		"its bank was created":                 {"live begin one two head processed", whole},
		"its first shred came":                 {"live shred one two head processed", whole},
		"its parent was over":                  {"live processed@99 one two head processed", whole},
		"its parent was over before the break": {"live processed@99 again one two head processed", "1 in part"},
		"its parent was confirmed":             {"live confirmed@99 one two head processed", "confirmed 99 known false, " + whole},
		"begun in the middle":                  {"live one two head processed late", "1 in part"},
		"its parent was over later":            {"live one processed@99 two head processed", "1 in part"},
		"confirmed, begun in the middle":       {"live one two head confirmed", "1 in part"},
		"a transaction after confirmed":        {"live begin one head confirmed two", whole + confirmed},
		"a transaction that never came": {
			"live begin one head confirmed confirmed@101", "the stream sent 1 of the 2 transactions of slot 100",
		},
		"written again after the block": {"live begin write one two head processed write", whole + " 0=1"},
		"written late after the block":  {"live begin write one two head processed late last", whole + " 0=1, 2 late"},
		"no word of it but of its child": {
			"live begin one two head begin@101 next finalized@101",
			whole + confirmed + ", 101.1 of 2/2 0=4, finalized 101 known true",
		},
		"a later try": {"live begin#7 one#7 other#7 begin#8 head#8 write#7 two#7 one#8 two#8 processed#8", whole},
		"a later try after the block": {
			"live begin#7 one#7 two#7 head#7 processed begin#8 one#8 two#8 other#8 processed#8", whole + ", 100.2 of 2/2",
		},
		// A write that comes after its block counts with those that build on it, and with no other.
		"late":               {"both 100<99 late 101<100 102<101", "100 1=100, 101 1=101 77=5, 102 1=102, 1 late"},
		"late, written anew": {"both 100<99 late 101<100=77 102<101", "100 1=100, 101 77=101, 102 1=102, 1 late"},
		"late, two branches": {
			"both 100<99 late 101<100 102<100 103<99", "100 1=100, 101 1=101 77=5, 102 1=102 77=5, 103 1=103, 1 late",
		},
		"late, the newest": {
			"both 100<99 late late77=7:13 late77=6:12 late1=4:9 101<100=2", "100 1=100, 101 2=101 77=7, 3 late",
		},
		"late, when the next is sealed too": {
			"both 100<99 101<100 102<100=77 late 103<101 104<102",
			"100 1=100, 101 1=101, 102 77=102, 103 1=103 77=5, 104 1=104, 1 late",
		},
		"late, of a dead block":    {"both 100<99 dead late 101<99", "100 1=100, dead 100 known true, 101 1=101"},
		"late, of another block":   {"both 100<99=1.3 late again 100<99 101<100", "100.3 1=100, 100 1=100, 101 1=101, 1 late"},
		"late, over streams":       {"both 100<99 late again 101<100", "100 1=100, 101 1=101 77=5, 1 late"},
		"late, then in time":       {"both 100<99 late again 100<99=77 101<100", "100 1=100, 100 77=100, 101 1=101 77=100, 1 late"},
		"late, that comes again":   {"both 100<99 late1=100:10 101<100=2", "100 1=100, 101 2=101"},
		"late, and shown again":    {"both 100<99 late again 100<99 101<100", "100 1=100, 100 1=100, 101 1=101 77=5, 1 late"},
		"late, then shown in part": {"live alone 100<99 again part late 101<100", "100 1=100, 101 1=101, 1 in part"},
	}
	for name, tt := range tests {
		scripts := []string{tt.script}
		if script, both := strings.CutPrefix(tt.script, "both "); both {
			scripts = []string{"alone " + script, "live alone " + script}
		}
		for _, script := range scripts {
			a, c := tell(t, script)
			got := c.outline()
			if a.Counts.Partial > 0 {
				got = append(got, fmt.Sprintf("%d in part", a.Counts.Partial))
			}
			if a.Counts.Late > 0 {
				got = append(got, fmt.Sprintf("%d late", a.Counts.Late))
			}
			if c.err != nil {
				got = append(got, c.err.Error())
			}
			if strings.Join(got, ", ") != tt.want {
				t.Errorf("%s: %s: %q, want %s", name, script, got, tt.want)
			}
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
	if len(a.slots) > keptSlots+100 || held(&a.done) > 2*keptEndings || a.Counts.Dropped == 0 {
		t.Errorf("%d slots and %d endings are held, %+v", len(a.slots), held(&a.done), a.Counts)
	}
	a.bytes = maxBytes
	if err := feed(t, a, aBlock(rand.New(rand.NewPCG(1, 1)), 1<<30, 1).updates...); err != errTooMuch {
		t.Errorf("%v, want %v", err, errTooMuch)
	}
}

// What is kept of late writes is bounded: the accounts of a block, and the blocks.
func TestLateWritesAreBounded(t *testing.T) {
	a, _ := tell(t, "alone 100<99")
	for n := range 2 * keptLate {
		mustFeed(t, a, accountOf(100, ledger.AccountWrite{Pubkey: ledger.Pubkey{77, byte(n), byte(n >> 8)}, Lamports: 1}, 11))
	}
	if n := len(a.sealed[0].late.accounts); n != keptLate || a.Counts.Late != 2*keptLate {
		t.Errorf("%d are kept of %d", n, a.Counts.Late)
	}
	script := "live alone"
	for slot := range keptBlocks + 1 {
		script += fmt.Sprintf(" %d<%d", 100+slot, 99+slot)
	}
	a, c := tell(t, script+" late 133<132=2")
	if got := c.outline(); len(a.sealed) != keptBlocks || a.Counts.Late != 0 || got[len(got)-1] != "133 2=133" {
		t.Errorf("of %d blocks a write that is too late to tell was taken: %s", len(a.sealed), got)
	}
}
