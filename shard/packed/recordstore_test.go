package packed

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/shard/arena"
)

// key returns the n-th key of a test. A quarter of the keys have one of two prefixes.
func key(n int) ledger.Pubkey {
	k := ledgertest.Key(n)
	if n%4 == 0 {
		copy(k[:8], []byte{7, 7, 7, 7, 7, 7, 7, byte(n / 4 % 2)})
	}
	return k
}

// anyAccount returns an account of which everything that can be said may be said.
func anyAccount(r *rand.Rand) *ledger.Account {
	few := func() ledger.Pubkey {
		if r.IntN(4) == 0 {
			return ledger.Pubkey{}
		}
		return key(r.IntN(20))
	}
	provenance := func() ledger.Provenance {
		return []ledger.Provenance{0, 1, ledger.Provenance(r.Uint32()), 1<<48 - 1, 1 << 48, math.MaxUint64}[r.IntN(6)]
	}
	optional := func() (k ledger.Opt[ledger.Pubkey]) {
		if r.IntN(2) == 0 {
			k.Known, k.Value = r.IntN(3) > 0, few()
		}
		return k
	}
	a := &ledger.Account{
		Pubkey: key(r.IntN(1000)), Owner: few(), Executable: r.IntN(2) == 0, Known: ledger.Fields(r.IntN(32)), Provenance: provenance(),
		Lamports:  []ledger.Lamports{0, 1, math.MaxUint64, ledger.Lamports(r.Uint64())}[r.IntN(4)],
		RentEpoch: []uint64{0, math.MaxUint64, math.MaxUint64, 361, math.MaxUint64 - 1}[r.IntN(5)],
	}
	if r.IntN(3) == 0 {
		a.Since = provenance()
	}
	if r.IntN(8) == 0 {
		a.Known = ledger.Fields(r.IntN(256))
	}
	if r.IntN(3) == 0 {
		a.FieldProvenance = &ledger.FieldProvenance{provenance(), provenance(), provenance(), provenance()}
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

// checkStore compares a store with the accounts that its records should have.
func checkStore(t *testing.T, s *recordStore, held map[arena.Ref]*ledger.Account) {
	t.Helper()
	names, holdings, extras, delegations := make(map[ledger.Pubkey]bool), 0, 0, 0
	for at, want := range held {
		var got ledger.Account
		if s.unpack(at, &got, new(Slab)); !reflect.DeepEqual(&got, want) {
			t.Fatalf("record %d is\n%+v (token %+v, earlier %+v), want\n%+v (token %+v, earlier %+v)",
				at, got, got.Token, got.FieldProvenance, want, want.Token, want.FieldProvenance)
		}
		shallow := *want
		shallow.Token, shallow.FieldProvenance = nil, nil
		if s.unpack(at, &got, nil); got != shallow {
			t.Fatalf("record %d is %+v without what is allocated, want %+v", at, got, shallow)
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
	got := [...]int{s.records.Taken(), s.holdings.Taken(), s.extras.Taken(), s.delegations.Taken(), s.keys.Names.Taken()}
	if want := [...]int{len(held), holdings, extras, delegations, len(names)}; got != want {
		t.Fatalf("records, holdings, extras, delegations and names taken: %d, want %d", got, want)
	}
}

// TestSizesOfRecords holds the sizes that the memory for each account depends on.
func TestSizesOfRecords(t *testing.T) {
	sizes := [...]uintptr{
		reflect.TypeFor[record]().Size(), reflect.TypeFor[holding]().Size(), reflect.TypeFor[extra]().Size(), reflect.TypeFor[listing]().Size(),
	}
	if want := [...]uintptr{56, 48, 72, 12}; sizes != want {
		t.Errorf("record, holding, extra and listing take %d bytes, want %d", sizes, want)
	}
}
