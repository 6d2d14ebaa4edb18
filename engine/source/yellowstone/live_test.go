package yellowstone

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"ledgerd/engine/ledger"
)

// bank numbers the try of a slot that a message is about.
func (w wire) bank(kind, field protowire.Number, id uint64) wire {
	number, wireType, n := protowire.ConsumeTag(w)
	filters, m := protowire.ConsumeBytes(w[n:])
	rest := w[n+m:]
	_, _, k := protowire.ConsumeTag(rest)
	part, l := protowire.ConsumeBytes(rest[k:])
	out := protowire.AppendBytes(protowire.AppendTag(nil, number, wireType), filters)
	return append(wire(out).bytes(kind, wire(slices.Clone(part)).number(field, id)), rest[k+l:]...)
}

func TestLiveStreamsSealWhatTheyShowedFromItsBegin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	b, next := aBlock(r, 100, 2), aBlock(r, 101, 2)
	head, one, two := headMessage(100, b.head), b.updates[len(b.updates)-2], b.updates[len(b.updates)-1]
	write, lastWrite := b.updates[0], b.updates[3]
	status := func(slot ledger.Slot, s SlotStatus) wire { return slotMessage(slot, s) }
	begin := status(100, CreatedBank)
	late := accountMessage(100, ledger.AccountWrite{Pubkey: key(77), Lamports: 1}, 999, nil, false)
	whole, nextWhole := "block 100.1 of 2/2", "block 101.1 of 2/2"
	confirmed := "confirmed 100 known true"
	other := b.head
	other.Hash[1] = 2
	tests := map[string]struct {
		messages []wire
		want     []string
		partial  uint64
		short    bool
	}{
		"its bank was created":           {[]wire{begin, one, two, head, status(100, Processed)}, []string{whole}, 0, false},
		"its first shred came":           {[]wire{status(100, FirstShred), one, two, head, status(100, Processed)}, []string{whole}, 0, false},
		"its parent was over":            {[]wire{status(99, Processed), one, two, head, status(100, Processed)}, []string{whole}, 0, false},
		"its parent was confirmed":       {[]wire{status(99, Confirmed), one, two, head, status(100, Processed)}, []string{"confirmed 99 known false", whole}, 0, false},
		"begun in the middle":            {[]wire{one, two, head, status(100, Processed), late}, nil, 1, false},
		"its parent was over later":      {[]wire{one, status(99, Processed), two, head, status(100, Processed)}, nil, 1, false},
		"confirmed, begun in the middle": {[]wire{one, two, head, status(100, Confirmed)}, nil, 1, false},
		"a transaction after confirmed":  {[]wire{begin, one, head, status(100, Confirmed), two}, []string{whole, confirmed}, 0, false},
		"a transaction that never came":  {[]wire{begin, one, head, status(100, Confirmed), status(101, Confirmed)}, nil, 0, true},
		"written again after the block":  {[]wire{begin, write, one, two, head, status(100, Processed), write}, []string{whole}, 0, false},
		"written late after the block":   {[]wire{begin, write, one, two, head, status(100, Processed), late, lastWrite}, []string{whole}, 0, false},
		"no word of it but of its child": {
			slices.Concat([]wire{begin, one, two, head, status(101, CreatedBank)}, next.updates, []wire{headMessage(101, next.head), status(101, Finalized)}),
			[]string{whole, confirmed, nextWhole, "finalized 101 known true"}, 0, false,
		},
		"a later try": {
			[]wire{begin.bank(3, 5, 7), one.bank(4, 3, 7), headMessage(100, other).bank(7, 10, 7), begin.bank(3, 5, 8), head.bank(7, 10, 8), two.bank(4, 3, 7), one.bank(4, 3, 8), two.bank(4, 3, 8), status(100, Processed).bank(3, 5, 8)},
			[]string{whole}, 0, false,
		},
		"a later try after the block": {
			[]wire{begin.bank(3, 5, 7), one.bank(4, 3, 7), two.bank(4, 3, 7), head.bank(7, 10, 7), status(100, Processed), begin.bank(3, 5, 8), one.bank(4, 3, 8), two.bank(4, 3, 8), headMessage(100, other).bank(7, 10, 8), status(100, Processed).bank(3, 5, 8)},
			[]string{whole, "block 100.2 of 2/2"}, 0, false,
		},
	}
	for name, tt := range tests {
		var c collector
		a := NewAssembler(c.emit)
		a.HasTransactions, a.Live = true, true
		err := feed(t, a, tt.messages...)
		var short *ShortError
		if errors.As(err, &short) != tt.short || err != nil && !tt.short {
			t.Errorf("%s: %v", name, err)
		}
		if got := outline(c.events); !slices.Equal(got, tt.want) || a.Counts.Partial != tt.partial {
			t.Errorf("%s: %q and %d in part, want %q and %d", name, got, a.Counts.Partial, tt.want, tt.partial)
		}
	}
}

// A server that counts more transactions than it sends, also when it is asked again, is believed.
func TestCountsThatNeverComeTrueAreGivenUp(t *testing.T) {
	var c collector
	a := NewAssembler(c.emit)
	a.HasTransactions, a.Live = true, true
	asked := 0
	for slot := ledger.Slot(100); slot < 110; slot++ {
		b := aBlock(rand.New(rand.NewPCG(1, 1)), slot, 2)
		b.head.Transactions = 3
		messages := slices.Concat([]wire{slotMessage(slot, CreatedBank)}, b.messages(), []wire{slotMessage(slot, Confirmed), slotMessage(slot+1, Confirmed)})
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

func TestSlicesTellWhatAnAccountIs(t *testing.T) {
	mint := make([]byte, 400)
	mint[45], mint[44] = 1, 6
	mint[165] = 1
	scaled := slices.Clone(mint)
	binary.LittleEndian.PutUint16(scaled[166:], 25)
	holding := append(tokenData(key(3), key(4), 6), 2, 0, 0, 0, 0)
	multisig := append(slices.Clone(holding), make([]byte, multisigBytes-len(holding))...)
	for name, data := range map[string][]byte{
		"nothing": nil, "little": make([]byte, 40), "a mint": mint[:82], "more than a mint": mint[:83], "less than a token account": holding[:164],
		"a token account": holding[:165], "an extended one": holding, "an extended one of 356 bytes": append(slices.Clone(multisig), 0),
		"a multisig that looks like one": multisig, "an extended mint": mint[:166], "a long mint": scaled, "a mint of 355 bytes": mint[:355],
	} {
		for _, owner := range []ledger.Pubkey{ledger.TokenProgram, ledger.Token2022Program, key(9)} {
			var sent []byte
			for _, s := range DataSlices() {
				if end := s.Offset + s.Length; uint64(len(data)) >= end {
					sent = append(sent, data[s.Offset:end]...)
				}
			}
			want := ledger.AccountWrite{Pubkey: key(1), Lamports: 1, Owner: owner, Known: ledger.FieldsShown}
			want.SetTokenFacts(data)
			if want.Mint != nil && len(data) > holdingBytes {
				want.Mint.Scaled = ledger.Opt[bool]{} // the slices do not reach that far
			}
			var u Update
			err := Decoder{Sliced: true}.Decode(accountMessage(9, ledger.AccountWrite{Pubkey: key(1), Lamports: 1, Owner: owner}, 1, sent, false), &u)
			if err != nil || !reflect.DeepEqual(u.Write, want) {
				t.Errorf("%s of %s: %v, got %+v, want %+v", name, owner, err, u.Write, want)
			}
		}
	}
	for _, n := range []int{1, 81, 84, 164, 169, 10 << 10} {
		var u Update
		message := accountMessage(9, ledger.AccountWrite{Pubkey: key(1), Lamports: 1}, 1, make([]byte, n), false)
		if err := (Decoder{Sliced: true}).Decode(message, &u); !errors.Is(err, ErrNotSliced) {
			t.Errorf("%d bytes: %v, want %v", n, err, ErrNotSliced)
		}
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
			messages := append(b.messages(), slotMessage(b.slot, SlotStatus(r.IntN(8))))
			var u Update
			if err := Decode(messages[r.IntN(len(messages))], &u); err != nil {
				t.Fatal(err)
			}
			u.Bank = uint64(r.IntN(3))
			if err := a.Take(t.Context(), &u); err != nil {
				a.Reconnected()
			}
		}
		held := 0
		for _, s := range a.slots {
			held += s.bytes
		}
		if held != a.bytes || len(a.short) > len(a.slots) {
			t.Fatalf("seed %d: %d bytes are counted, %d held; %d of %d slots are short", seed, a.bytes, held, len(a.short), len(a.slots))
		}
	}
}
