package shard

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
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
	v := newRecordStore()
	held := make(map[ref]*ledger.Account)
	var refs []ref
	lasting := new(slab)
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

func checkStore(t *testing.T, v *recordStore, held map[ref]*ledger.Account, dst *slab) {
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
	got := [...]int{v.accounts.taken(), v.holds.taken(), v.extraSlots.taken(), v.delegated.taken(), v.keys.slots.taken()}
	if want := [...]int{len(held), holdings, extras, delegations, len(names)}; got != want {
		t.Fatalf("records, holdings, extras, delegations and names taken: %d, want %d", got, want)
	}
}

// checkEmpty checks that a store holds nothing, and remembers nothing either.
func checkEmpty(t *testing.T, v *recordStore) {
	t.Helper()
	checkStore(t, v, nil, nil)
	for i := range v.keys.parts {
		if n := v.keys.parts[i].used; n != 0 {
			t.Errorf("%d places of part %d of the names are taken", n, i)
		}
	}
	for name, n := range v.keys.counts {
		if n != 0 {
			t.Errorf("name %d is still counted %d times", name, n)
		}
	}
	for at := ref(1); at <= v.accounts.highest; at++ {
		if *v.records.at(at) != (record{}) {
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

// TestInternedKeysAreCounted uses and drops keys at random, many of which collide, and compares with
// a map of counts.
func TestInternedKeysAreCounted(t *testing.T) {
	r := seeded(t, 1)
	var names chunks[ledger.Pubkey]
	in := interned{names: &names}
	counts, given := make(map[ledger.Pubkey]int), make(map[ledger.Pubkey]ref)
	for step := range 100_000 {
		k := key(r.IntN(1 + step/50%700))
		if n := counts[k]; n > 0 && r.IntN(2) == 0 {
			in.drop(given[k])
			counts[k]--
			continue
		}
		name := in.use(&k)
		if counts[k] > 0 && given[k] != name {
			t.Fatalf("step %d: a key has two names", step)
		}
		counts[k]++
		given[k] = name
	}
	held := 0
	for k, n := range counts {
		name, found := in.find(&k)
		if found != (n > 0) || found && (name != given[k] || *names.at(name) != k) {
			t.Errorf("%s is name %d (%v), want %d, counted %d", k, name, found, given[k], n)
		}
		if n > 0 {
			held++
		}
		for range n {
			in.drop(given[k])
		}
		if _, found := in.find(&k); found {
			t.Errorf("%s is found when nothing has it", k)
		}
	}
	if held == 0 || in.slots.taken() != 0 {
		t.Errorf("%d names are taken after all of %d were dropped", in.slots.taken(), held)
	}
	if zero, found := in.find(&ledger.Pubkey{}); !found || zero != 0 || in.use(&ledger.Pubkey{}) != 0 {
		t.Error("the key of zeros is not 0")
	}
}

// TestNoTableOfKeysIsLong uses many keys: a table that is resized stalls whoever adds a key by its length.
func TestNoTableOfKeysIsLong(t *testing.T) {
	const keys = 100_000
	var names chunks[ledger.Pubkey]
	in := interned{names: &names}
	for i := range keys {
		k := key(i)
		in.use(&k)
	}
	for i := range in.parts {
		if n := len(in.parts[i].table); n > keys/32 {
			t.Errorf("part %d has %d places for %d keys in all", i, n, keys)
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
		v := newRecordStore()
		at := v.put(first)
		checkStore(t, v, map[ref]*ledger.Account{at: first}, new(slab))
		v.write(at, second)
		checkStore(t, v, map[ref]*ledger.Account{at: second}, new(slab))
		v.free(at)
		checkEmpty(t, v)
	})
}
