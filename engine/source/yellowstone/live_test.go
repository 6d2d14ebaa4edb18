package yellowstone

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"ledgerd/engine/ledger"
)

func TestLiveStreamsSealWhatTheyShowedFromItsBegin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	b, next := aBlock(r, 100, 2), aBlock(r, 101, 2)
	head, one, two := headOf(100, b.head), b.updates[len(b.updates)-2], b.updates[len(b.updates)-1]
	write, lastWrite := b.updates[0], b.updates[3]
	begin := statusOf(100, CreatedBank)
	late := accountOf(100, ledger.AccountWrite{Pubkey: key(77), Lamports: 1}, 999)
	whole, nextWhole := "block 100.1 of 2/2", "block 101.1 of 2/2"
	confirmed := "confirmed 100 known true"
	other := b.head
	other.Hash[1] = 2
	tests := map[string]struct {
		messages []Update
		want     []string
		partial  uint64
		short    bool
	}{
		"its bank was created":           {[]Update{begin, one, two, head, statusOf(100, Processed)}, []string{whole}, 0, false},
		"its first shred came":           {[]Update{statusOf(100, FirstShred), one, two, head, statusOf(100, Processed)}, []string{whole}, 0, false},
		"its parent was over":            {[]Update{statusOf(99, Processed), one, two, head, statusOf(100, Processed)}, []string{whole}, 0, false},
		"its parent was confirmed":       {[]Update{statusOf(99, Confirmed), one, two, head, statusOf(100, Processed)}, []string{"confirmed 99 known false", whole}, 0, false},
		"begun in the middle":            {[]Update{one, two, head, statusOf(100, Processed), late}, nil, 1, false},
		"its parent was over later":      {[]Update{one, statusOf(99, Processed), two, head, statusOf(100, Processed)}, nil, 1, false},
		"confirmed, begun in the middle": {[]Update{one, two, head, statusOf(100, Confirmed)}, nil, 1, false},
		"a transaction after confirmed":  {[]Update{begin, one, head, statusOf(100, Confirmed), two}, []string{whole, confirmed}, 0, false},
		"a transaction that never came":  {[]Update{begin, one, head, statusOf(100, Confirmed), statusOf(101, Confirmed)}, nil, 0, true},
		"written again after the block":  {[]Update{begin, write, one, two, head, statusOf(100, Processed), write}, []string{whole}, 0, false},
		"written late after the block":   {[]Update{begin, write, one, two, head, statusOf(100, Processed), late, lastWrite}, []string{whole}, 0, false},
		"no word of it but of its child": {
			slices.Concat([]Update{begin, one, two, head, statusOf(101, CreatedBank)}, next.updates, []Update{headOf(101, next.head), statusOf(101, Finalized)}),
			[]string{whole, confirmed, nextWhole, "finalized 101 known true"}, 0, false,
		},
		"a later try": {
			[]Update{begin.bank(7), one.bank(7), headOf(100, other).bank(7), begin.bank(8), head.bank(8), two.bank(7), one.bank(8), two.bank(8), statusOf(100, Processed).bank(8)},
			[]string{whole}, 0, false,
		},
		"a later try after the block": {
			[]Update{begin.bank(7), one.bank(7), two.bank(7), head.bank(7), statusOf(100, Processed), begin.bank(8), one.bank(8), two.bank(8), headOf(100, other).bank(8), statusOf(100, Processed).bank(8)},
			[]string{whole, "block 100.2 of 2/2"}, 0, false,
		},
	}
	for name, tt := range tests {
		a, c := newCollected(true)
		err := feed(t, a, tt.messages...)
		var short *ShortError
		if errors.As(err, &short) != tt.short || err != nil && !tt.short {
			t.Errorf("%s: %v", name, err)
		}
		if got := c.outline(); !slices.Equal(got, tt.want) || a.Counts.Partial != tt.partial {
			t.Errorf("%s: %q and %d in part, want %q and %d", name, got, a.Counts.Partial, tt.want, tt.partial)
		}
	}
}

// A server that counts more transactions than it sends, also when it is asked again, is believed.
func TestCountsThatNeverComeTrueAreGivenUp(t *testing.T) {
	a, _ := newCollected(true)
	asked := 0
	for slot := ledger.Slot(100); slot < 110; slot++ {
		b := aBlock(rand.New(rand.NewPCG(1, 1)), slot, 2)
		b.head.Transactions = 3
		messages := slices.Concat([]Update{statusOf(slot, CreatedBank)}, b.whole(), []Update{statusOf(slot, Confirmed), statusOf(slot+1, Confirmed)})
		for {
			err := feed(t, a, messages...)
			if err == nil {
				break
			}
			want := &ShortError{slot, 2, 3}
			if short := new(ShortError); !errors.As(err, &short) || *short != *want {
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
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		a := NewAssembler(func(context.Context, ledger.Event) error { return nil })
		a.Live, a.HasTransactions = true, r.IntN(2) == 0
		for range 400 {
			b := aBlock(r, ledger.Slot(100+r.IntN(8)), r.IntN(4))
			b.head.Hash[2] = byte(r.IntN(2))
			messages := append(b.whole(), statusOf(b.slot, SlotStatus(r.IntN(8))))
			if err := feed(t, a, messages[r.IntN(len(messages))].bank(uint64(r.IntN(3)))); err != nil {
				a.Reconnected()
			}
		}
		held := 0
		for _, s := range a.slots {
			held += s.bytes
		}
		if held != a.bytes {
			t.Fatalf("seed %d: %d bytes are counted, %d held", seed, a.bytes, held)
		}
	}
}
