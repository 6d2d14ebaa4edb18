package ledger

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// change is a write with its provenance.
type change struct {
	write AccountWrite
	from  Provenance
}

func byBlock(s Slot, w AccountWrite) change { return change{w, BlockProvenance(s)} }
func byBase(s Slot, w AccountWrite) change  { return change{w, BaseProvenance(s)} }

func merged(changes []change) *Account {
	var a *Account
	for i := range changes {
		a = Merge(a, &changes[i].write, changes[i].from)
	}
	return a
}

// When base state arrives must not matter: blocks come in the order of their slots, and
// base state of any slot in between gives what it would have given at its place.
func TestBaseStateGivesTheSameWheneverItArrives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var arrived []change
		slot := Slot(0)
		for range rapid.IntRange(1, 8).Draw(t, "writes") {
			w := AccountWrite{
				Lamports: Lamports(rapid.Uint64Range(1, 9).Draw(t, "lamports")), // no closing
				Known:    Fields(rapid.Byte().Draw(t, "known")) & FieldsShown,
			}
			if w.Known&FieldOwner != 0 {
				w.Owner[0] = rapid.Byte().Draw(t, "owner")
			}
			if w.Known&FieldRentEpoch != 0 {
				w.RentEpoch = rapid.Uint64().Draw(t, "rent epoch")
			}
			w.Executable = w.Known&FieldExecutable != 0 && rapid.Bool().Draw(t, "executable")
			if rapid.Bool().Draw(t, "block") {
				slot++
				arrived = append(arrived, byBlock(slot, w))
			} else {
				// Never past the next block: that it comes after base state taken
				// later happens only when the source goes back.
				arrived = append(arrived, byBase(Slot(rapid.Uint64Range(0, uint64(slot)).Draw(t, "base slot")), w))
			}
		}
		inOrder := slices.Clone(arrived)
		slices.SortStableFunc(inOrder, func(a, b change) int { return int(a.from) - int(b.from) })
		got, want := merged(arrived), merged(inOrder)
		got.Pubkey, want.Pubkey = Pubkey{}, Pubkey{}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("as they arrived %+v:\ngot  %+v\nwant %+v", arrived, got, want)
		}
	})
}
