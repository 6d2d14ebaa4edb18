package packed

import (
	"runtime"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/shard/arena"
)

// G21: TestBaseHoldsWhatWasPut puts and drops accounts at random while copies are taken and released, and compares what is unpacked with a plain
// map. That lists and copies are right, too, the tests of package shard show. At the end all goes, and nothing may be left.
func TestBaseHoldsWhatWasPut(t *testing.T) {
	r := ledgertest.Seeded(t, 1)
	b, held := New(Kinds), make(map[ledger.Pubkey]*ledger.Account)
	var frozen *Frozen
	for step := range 30_000 {
		a := anyAccount(r)
		at := b.Get(&a.Pubkey)
		ledgertest.MustHold(t, (at != 0) == (held[a.Pubkey] != nil), "step %d: %s is record %d", step, a.Pubkey, at)
		switch n := r.IntN(200); {
		case n == 0 && frozen == nil:
			frozen = b.Freeze()
		case n == 1 && frozen != nil:
			frozen.Release()
			frozen = nil
		case n < 60 && at != 0:
			b.Drop(at)
			delete(held, a.Pubkey)
		case n >= 60:
			b.Put(at, a)
			held[a.Pubkey] = a
		}
		if step%1000 == 0 {
			for k, want := range held {
				at := b.Get(&k)
				var got, shallow ledger.Account
				b.UnpackCopy(at, &got)
				ledgertest.Equal(t, &got, want, "step %d: record %d", step, at)
				b.UnpackShallow(at, &shallow)
				got.Token, got.Data, got.FieldProvenance = nil, ledger.Data{}, nil
				ledgertest.MustHold(t, shallow == got && !t.Failed(), "step %d: record %d is %+v without what is allocated", step, at, shallow)
			}
		}
	}
	if frozen != nil {
		frozen.Release()
	}
	for k := range held {
		b.Drop(b.Get(&k))
	}
	b.Reclaim(1 << 20)
	s := &b.store
	left := []int{b.Len(), len(b.pins.retired), s.records.Taken(), s.holdings.Taken(), s.data.Taken(), s.extras.Taken(), s.delegations.Taken(), s.keys.Names.Taken(), s.dataBytes}
	for _, list := range b.lists {
		left = append(left, list.listings.Len())
	}
	ledgertest.Equal(t, left, make([]int, len(left)), "what is left: accounts, retired records, those of each kind, and those in the lists")
}

// G22: the same accounts are written again and again with copies held, then released, then forgotten. A copy keeps one record
// of an account however often that is written.
func TestRecordsAreKeptForCopies(t *testing.T) {
	const accounts = 100
	b := New(Kinds)
	v := ledger.Lamports(0)
	write := func(times, wantTaken int) {
		t.Helper()
		for range times {
			v++
			for i := range accounts {
				a := &ledger.Account{Pubkey: key(i), Lamports: v}
				b.Put(b.Get(&a.Pubkey), a)
			}
		}
		if n := b.store.records.Taken(); n != wantTaken && wantTaken > 0 {
			t.Errorf("%d records are taken, want %d", n, wantTaken)
		}
	}
	write(1, accounts)
	frozen, then := b.Freeze(), v
	write(10, 2*accounts)
	frozen.Ascend(func(key *ledger.Pubkey, r arena.Ref) bool {
		var a ledger.Account
		frozen.Unpack(r, &a)
		ledgertest.Equal(t, a.Lamports, then, "%s is frozen with lamports", key)
		return !t.Failed()
	})
	second := b.Freeze()
	write(10, 3*accounts)
	second.Release()
	frozen.Release()
	write(1, accounts)
	b.Freeze() // and forgotten
	write(1, 0)
	for b.store.records.Taken() != accounts {
		runtime.GC() // its cleanup runs some time after
		b.Reclaim(accounts)
	}
	defer func() {
		ledgertest.Holds(t, recover() != nil, "a copy was walked after its release")
	}()
	frozen.Ascend(func(*ledger.Pubkey, arena.Ref) bool { return true })
}
