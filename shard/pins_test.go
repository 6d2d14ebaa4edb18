package shard

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
	b := newBase()
	held := make(map[ledger.Pubkey]*ledger.Account)
	type copied struct {
		base *frozenBase
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
			copies = append(copies, copied{b.freeze(), want})
		case n == 1 && len(copies) > 0:
			i := r.IntN(len(copies))
			checkFrozenBase(t, copies[i].base, copies[i].want)
			copies[i].base.pin.released.Store(true)
			copies = append(copies[:i], copies[i+1:]...)
		case n < 60:
			b.remove(&a.Pubkey)
			delete(held, a.Pubkey)
		default:
			b.set(a)
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
		c.base.pin.released.Store(true)
	}
	for k := range held {
		b.remove(&k)
	}
	b.reclaim(1 << 20)
	checkEmpty(t, b.store)
	if b.byKey.len()+b.programs.len()+b.wallets.len() != 0 || b.pins.retired != nil || len(b.pins.active) != 0 {
		t.Errorf("something is left: %d, %d, %d entries, %d retired records, %d pins",
			b.byKey.len(), b.programs.len(), b.wallets.len(), len(b.pins.retired), len(b.pins.active))
	}
}

func checkFrozenBase(t *testing.T, f *frozenBase, want map[ledger.Pubkey]*ledger.Account) {
	t.Helper()
	n := 0
	f.byKey.Scan(func(l listing) bool {
		var a ledger.Account
		f.view.unpack(l.ref, &a, new(slab))
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
func checkBase(t *testing.T, r *rand.Rand, b *base, held map[ledger.Pubkey]*ledger.Account) {
	t.Helper()
	live := make(map[arena.Ref]*ledger.Account)
	programs, wallets := 0, 0
	for k, a := range held {
		at := b.get(&k)
		if at == 0 {
			t.Fatalf("%s is not found", k)
		}
		live[at] = a
		if program, ok := byProgram(a); ok {
			programs++
			name, found := b.store.keys.Find(&program)
			if !found || b.programs.get(grouped(uint32(name), &k), &k) != at {
				t.Fatalf("%s is not listed by its program", k)
			}
		}
		if wallet, ok := byWallet(a); ok {
			wallets++
			if b.wallets.get(grouped(walletGroup(&wallet), &k), &k) != at {
				t.Fatalf("%s is not listed by its wallet", k)
			}
		}
	}
	if b.len() != len(held) || b.programs.len() != programs || b.wallets.len() != wallets {
		t.Fatalf("%d accounts, %d of programs and %d of wallets are listed, want %d, %d, %d",
			b.len(), b.programs.len(), b.wallets.len(), len(held), programs, wallets)
	}
	if len(b.pins.retired) == 0 {
		checkStore(t, b.store, live, new(slab))
	}
	if absent := key(2000 + r.IntN(1000)); b.get(&absent) != 0 {
		t.Errorf("%s is found", absent)
	}
}

// TestRecordsAreKeptForCopies folds over the same accounts again and again with a copy held, then
// released, then forgotten, and counts records.
func TestRecordsAreKeptForCopies(t *testing.T) {
	const accounts = 100
	s := start(t)
	v := ledger.Version(0)
	write := func() {
		v++
		var writes []ledger.AccountWrite
		for i := range accounts {
			writes = append(writes, lamports(key(i), ledger.Lamports(v)))
		}
		applyBlock(t, s, v, writes...)
		s.Fold(v, 0)
		settle(t, s, v)
	}
	taken := func() int {
		t.Helper()
		n, err := askAt(s, v, soon(), func(st *state) int { return st.accounts.base.store.accounts.Taken() })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	freeze := func() *Frozen {
		t.Helper()
		frozen, err := s.Freeze(v).Wait()
		if err != nil {
			t.Fatal(err)
		}
		return frozen
	}
	write()
	if n := taken(); n != accounts {
		t.Fatalf("%d records are taken for %d accounts", n, accounts)
	}
	frozen, then := freeze(), v
	for range 10 { // however often an account is written, the copy keeps one record of it
		write()
	}
	if n := taken(); n != 2*accounts {
		t.Errorf("%d records are taken with a copy held, want those of the copy and the newest", n)
	}
	frozen.Accounts(func(a *ledger.Account) bool {
		if a.Lamports != ledger.Lamports(then) {
			t.Errorf("%s is frozen with %d lamports, want %d", a.Pubkey, a.Lamports, then)
		}
		return !t.Failed()
	})
	second := freeze()
	for range 10 {
		write()
	}
	if n := taken(); n != 3*accounts {
		t.Errorf("%d records are taken with two copies held, want those of both and the newest", n)
	}
	second.Release()
	frozen.Release()
	if write(); taken() != accounts {
		t.Errorf("%d records are taken after the copy was released, want %d", taken(), accounts)
	}
	freeze() // and forgotten
	write()
	for taken() != accounts {
		runtime.GC() // its cleanup runs some time after
		settle(t, s, v)
	}
	defer func() {
		if recover() == nil {
			t.Error("a copy was walked after its release")
		}
	}()
	frozen.Accounts(func(*ledger.Account) bool { return true })
}
