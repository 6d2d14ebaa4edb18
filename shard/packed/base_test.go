package packed

import (
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// TestBaseEqualsPlainMap sets and removes accounts at random while copies are taken, walked and
// released in any order, and compares base, indexes and copies with plain maps. At the end all
// goes, and nothing may be left.
func TestBaseEqualsPlainMap(t *testing.T) {
	r := seeded(t, 1)
	b := New()
	held := make(map[ledger.Pubkey]*ledger.Account)
	type copied struct {
		base *Frozen
		want map[ledger.Pubkey]*ledger.Account
	}
	var copies []copied
	for step := range 30_000 {
		a := anyAccount(r)
		switch n := r.IntN(200); {
		case n == 0 && len(copies) < 4:
			want := make(map[ledger.Pubkey]*ledger.Account, len(held))
			for k, a := range held {
				want[k] = a
			}
			copies = append(copies, copied{b.Freeze(), want})
		case n == 1 && len(copies) > 0:
			i := r.IntN(len(copies))
			checkFrozenBase(t, copies[i].base, copies[i].want)
			copies[i].base.Release()
			copies = append(copies[:i], copies[i+1:]...)
		case n < 60:
			b.Remove(&a.Pubkey)
			delete(held, a.Pubkey)
		default:
			b.Put(b.Get(&a.Pubkey), a)
			held[a.Pubkey] = a
		}
		if step%1000 == 0 {
			checkBase(t, r, b, held)
		}
		if t.Failed() {
			t.Fatalf("step %d", step)
		}
	}
	for _, c := range copies {
		checkFrozenBase(t, c.base, c.want)
		c.base.Release()
	}
	for k := range held {
		b.Remove(&k)
	}
	b.Reclaim(1 << 20)
	checkEmpty(t, b.store)
	if b.Len()+b.programs.listings.Len()+b.wallets.listings.Len() != 0 || b.pins.retired != nil || len(b.pins.active) != 0 {
		t.Errorf("something is left: %d, %d, %d entries, %d retired records, %d pins",
			b.Len(), b.programs.listings.Len(), b.wallets.listings.Len(), len(b.pins.retired), len(b.pins.active))
	}
}

func checkFrozenBase(t *testing.T, f *Frozen, want map[ledger.Pubkey]*ledger.Account) {
	t.Helper()
	n := 0
	f.Ascend(func(_ *ledger.Pubkey, r arena.Ref) bool {
		var a ledger.Account
		f.Unpack(r, &a, new(Slab))
		if n++; !reflect.DeepEqual(&a, want[a.Pubkey]) {
			t.Errorf("%s is frozen as %+v, want %+v", a.Pubkey, a, want[a.Pubkey])
		}
		return !t.Failed()
	})
	if n != len(want) && !t.Failed() {
		t.Errorf("%d accounts are frozen, want %d", n, len(want))
	}
}

// checkBase compares a base and its indexes with what they should list.
func checkBase(t *testing.T, r *rand.Rand, b *Base, held map[ledger.Pubkey]*ledger.Account) {
	t.Helper()
	live := make(map[arena.Ref]*ledger.Account)
	programs, wallets := 0, 0
	for k, a := range held {
		at := b.Get(&k)
		if at == 0 {
			t.Fatalf("%s is not found", k)
		}
		live[at] = a
		if program := a.Owner; a.Exists() && a.Known&ledger.FieldOwner != 0 {
			programs++
			name, found := b.store.keys.Find(&program)
			if !found || b.programs.get(grouped(uint32(name), &k), &k) != at {
				t.Fatalf("%s is not listed by its program", k)
			}
		}
		if a.Exists() && a.Token != nil {
			wallets++
			if b.wallets.get(grouped(walletGroup(&a.Token.Owner), &k), &k) != at {
				t.Fatalf("%s is not listed by its wallet", k)
			}
		}
	}
	if b.Len() != len(held) || b.programs.listings.Len() != programs || b.wallets.listings.Len() != wallets {
		t.Fatalf("%d accounts, %d of programs and %d of wallets are listed, want %d, %d, %d",
			b.Len(), b.programs.listings.Len(), b.wallets.listings.Len(), len(held), programs, wallets)
	}
	if len(b.pins.retired) == 0 {
		checkStore(t, b.store, live, new(Slab))
	}
	if absent := key(2000 + r.IntN(1000)); b.Get(&absent) != 0 {
		t.Errorf("%s is found", absent)
	}
}

// TestRecordsAreKeptForCopies writes the same accounts again and again with a copy held, then released,
// then forgotten, and counts records.
func TestRecordsAreKeptForCopies(t *testing.T) {
	const accounts = 100
	b := New()
	v := ledger.Lamports(0)
	write := func() {
		v++
		for i := range accounts {
			a := &ledger.Account{Pubkey: key(i), Lamports: v}
			b.Put(b.Get(&a.Pubkey), a)
		}
	}
	taken := func() int { return b.store.recordSlots.Taken() }
	if write(); taken() != accounts {
		t.Fatalf("%d records are taken for %d accounts", taken(), accounts)
	}
	frozen, then := b.Freeze(), v
	for range 10 { // however often an account is written, the copy keeps one record of it
		write()
	}
	if n := taken(); n != 2*accounts {
		t.Errorf("%d records are taken with a copy held, want those of the copy and the newest", n)
	}
	frozen.Ascend(func(key *ledger.Pubkey, r arena.Ref) bool {
		var a ledger.Account
		if frozen.Unpack(r, &a, new(Slab)); a.Lamports != then {
			t.Errorf("%s is frozen with %d lamports, want %d", key, a.Lamports, then)
		}
		return !t.Failed()
	})
	second := b.Freeze()
	for range 10 {
		write()
	}
	if n := taken(); n != 3*accounts {
		t.Errorf("%d records are taken with two copies held, want those of both and the newest", n)
	}
	second.Release()
	frozen.Release()
	if write(); taken() != accounts {
		t.Errorf("%d records are taken after the copies were released, want %d", taken(), accounts)
	}
	b.Freeze() // and forgotten
	write()
	for taken() != accounts {
		runtime.GC() // its cleanup runs some time after
		b.Reclaim(accounts)
	}
	defer func() {
		if recover() == nil {
			t.Error("a copy was walked after its release")
		}
	}()
	frozen.Ascend(func(*ledger.Pubkey, arena.Ref) bool { return true })
}
