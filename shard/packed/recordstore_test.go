package packed

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// anyAccount returns an account of which everything that can be said may be said.
func anyAccount(r *rand.Rand) *ledger.Account {
	few := func() ledger.Pubkey {
		if r.IntN(4) == 0 {
			return ledger.Pubkey{}
		}
		return key(r.IntN(20))
	}
	taught := func() ledger.Provenance {
		return []ledger.Provenance{0, 1, ledger.Provenance(r.Uint32()), 1<<48 - 1, 1 << 48, math.MaxUint64}[r.IntN(6)]
	}
	optional := func() (k ledger.Opt[ledger.Pubkey]) {
		if r.IntN(2) == 0 {
			k.Known, k.Value = r.IntN(3) > 0, few()
		}
		return k
	}
	a := &ledger.Account{
		Pubkey: key(r.IntN(1000)), Owner: few(), Executable: r.IntN(2) == 0, Known: ledger.Fields(r.IntN(32)), Provenance: taught(),
		Lamports:  []ledger.Lamports{0, 1, math.MaxUint64, ledger.Lamports(r.Uint64())}[r.IntN(4)],
		RentEpoch: []uint64{0, math.MaxUint64, math.MaxUint64, 361, math.MaxUint64 - 1}[r.IntN(5)],
	}
	if r.IntN(3) == 0 {
		a.Since = taught()
	}
	if r.IntN(8) == 0 {
		a.Known = ledger.Fields(r.IntN(256))
	}
	if r.IntN(3) == 0 {
		a.FieldProvenance = &ledger.FieldProvenance{taught(), taught(), taught(), taught()}
	}
	if r.IntN(2) == 0 {
		a.Token = &ledger.TokenAccount{Mint: few(), Owner: few(), Amount: r.Uint64() >> r.IntN(64)}
		d := &a.Token.Details
		d.Known = r.IntN(3) > 0
		d.Value.State = ledger.TokenState(r.IntN(3))
		switch r.IntN(4) {
		case 0:
			d.Value.Delegate, d.Value.CloseAuthority, d.Value.DelegatedAmount = optional(), optional(), r.Uint64()>>r.IntN(64)
		case 1:
			d.Value.State = ledger.TokenState(r.IntN(256))
		}
	}
	return a
}

// TestPackedAccountsComeOutAsTheyWentIn writes accounts into records, over other accounts and anew,
// frees some, and compares all with what they were made of.
func TestPackedAccountsComeOutAsTheyWentIn(t *testing.T) {
	r := seeded(t, 1)
	v := new(recordStore)
	held := make(map[arena.Ref]*ledger.Account)
	var refs []arena.Ref
	lasting := new(Slab)
	for step := range 20_000 {
		a := anyAccount(r)
		switch n := r.IntN(8); {
		case n < 3 || len(refs) == 0:
			at := v.put(a)
			if held[at] != nil || at == 0 {
				t.Fatalf("step %d: record %d was given out twice", step, at)
			}
			held[at] = a
			refs = append(refs, at)
		case n < 6:
			at := refs[r.IntN(len(refs))]
			v.write(at, a)
			held[at] = a
		default:
			i := r.IntN(len(refs))
			v.free(refs[i])
			delete(held, refs[i])
			refs[i] = refs[len(refs)-1]
			refs = refs[:len(refs)-1]
		}
		if step%500 == 0 {
			checkStore(t, v, held, lasting)
		}
	}
	// Parts that live on must not be the room of another.
	at := refs[0]
	var first, second ledger.Account
	v.unpack(at, &first, lasting)
	v.unpack(at, &second, lasting)
	if first.Token != nil && first.Token == second.Token || first.FieldProvenance != nil && first.FieldProvenance == second.FieldProvenance {
		t.Error("two accounts share what they point at")
	}
	for _, at := range refs {
		v.free(at)
	}
	checkEmpty(t, v)
}

func checkStore(t *testing.T, v *recordStore, held map[arena.Ref]*ledger.Account, dst *Slab) {
	t.Helper()
	names, holdings, extras, delegations := make(map[ledger.Pubkey]bool), 0, 0, 0
	for at, want := range held {
		var got ledger.Account
		if v.unpack(at, &got, dst); !reflect.DeepEqual(&got, want) {
			t.Fatalf("record %d is\n%+v (token %+v, earlier %+v), want\n%+v (token %+v, earlier %+v)", at, got, got.Token, got.FieldProvenance, want, want.Token, want.FieldProvenance)
		}
		names[want.Owner] = true
		if want.Token != nil {
			names[want.Token.Mint] = true
			holdings++
			if needsDelegation(want.Token) {
				delegations++
			}
		}
		if _, needs := flagsOf(want); needs {
			extras++
		}
	}
	delete(names, ledger.Pubkey{})
	got := [...]int{v.recordSlots.Taken(), v.holdingSlots.Taken(), v.extraSlots.Taken(), v.delegationSlots.Taken(), v.keys.Len()}
	if want := [...]int{len(held), holdings, extras, delegations, len(names)}; got != want {
		t.Fatalf("records, holdings, extras, delegations and names taken: %d, want %d", got, want)
	}
}

// checkEmpty checks that a store holds nothing, and remembers nothing either.
func checkEmpty(t *testing.T, v *recordStore) {
	t.Helper()
	checkStore(t, v, nil, nil)
	for at := arena.Ref(1); at <= v.recordSlots.Highest(); at++ {
		if *v.records.At(at) != (record{}) {
			t.Errorf("record %d is not empty", at)
		}
	}
}

// TestRecordsAreOfTheirSize holds the sizes against what memory per account is reckoned with.
func TestRecordsAreOfTheirSize(t *testing.T) {
	for name, tt := range map[string]struct {
		of   reflect.Type
		want uintptr
	}{
		"record": {reflect.TypeFor[record](), 56}, "holding": {reflect.TypeFor[holding](), 48}, "extra": {reflect.TypeFor[extra](), 72},
		"listing": {reflect.TypeFor[listing](), 12},
	} {
		if tt.of.Size() != tt.want {
			t.Errorf("%s takes %d bytes, want %d", name, tt.of.Size(), tt.want)
		}
	}
}

// FuzzPack writes an account over another and compares what comes out with what went in. The
// accounts are what the codec makes of the input.
func FuzzPack(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		a := anyAccount(r)
		a.Known &= ledger.FieldsShown | ledger.FieldToken
		f.Add(codec.AppendAccount(codec.AppendAccount(nil, a), anyAccount(r)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var decoder codec.AccountDecoder
		first, rest, err := decoder.Decode(b)
		if err != nil {
			return
		}
		second, _, err := decoder.Decode(rest)
		if err != nil {
			second = new(ledger.Account)
			binary.LittleEndian.PutUint64(second.Pubkey[:], uint64(len(rest)))
		}
		v := new(recordStore)
		at := v.put(first)
		checkStore(t, v, map[arena.Ref]*ledger.Account{at: first}, new(Slab))
		v.write(at, second)
		checkStore(t, v, map[arena.Ref]*ledger.Account{at: second}, new(Slab))
		v.free(at)
		checkEmpty(t, v)
	})
}
