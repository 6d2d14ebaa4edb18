package packed

import (
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/shard/arena"
)

// G21: TestBaseEqualsPlainMap sets and removes accounts at random while copies are taken, walked and
// released in any order, and compares base, indexes and copies with plain maps. Halfway it goes on with a base that was
// loaded. At the end all goes, and nothing may be left.
func TestBaseEqualsPlainMap(t *testing.T) {
	r := ledgertest.Seeded(t, 1)
	b := New(Kinds)
	held := make(map[ledger.Pubkey]*ledger.Account)
	var copies []func()
	for step := range 30_000 {
		a := anyAccount(r)
		switch n := r.IntN(200); {
		case n == 0 && len(copies) < 4:
			frozen, want := b.Freeze(), maps.Clone(held)
			copies = append(copies, func() {
				checkFrozenBase(t, frozen, want)
				frozen.Release()
			})
		case n == 1 && len(copies) > 0:
			i := r.IntN(len(copies))
			copies[i]()
			copies = slices.Delete(copies, i, i+1)
		case n == 2:
			forgetClosed(t, b, held, a.Since.Slot()+1)
		case n < 60:
			if at := b.Get(&a.Pubkey); at != 0 {
				b.Drop(at)
			}
			delete(held, a.Pubkey)
		default:
			if was := held[a.Pubkey]; n < 90 && was != nil && was.Token != nil { // nothing but the delegate or the mint changes
				a = new(*was)
				a.Token = new(*was.Token)
				if n < 70 {
					a.Token.Mint = key(r.IntN(20))
				}
				a.Token.Details = ledger.Some(ledger.TokenDetails{Delegate: ledger.Opt[ledger.Pubkey]{Known: n < 80, Value: key(r.IntN(20))}})
			}
			b.Put(b.Get(&a.Pubkey), a)
			held[a.Pubkey] = a
		}
		if step == 15_000 {
			b = New(Kinds)
			load := b.Loader(len(held))
			for _, k := range sortedKeys(held, func(*ledger.Account) bool { return true }) {
				load.Add(held[k])
			}
			load.Finish()
		}
		if step%1000 == 0 {
			checkBase(t, r, b, held)
		}
		ledgertest.MustHold(t, !t.Failed(), "step %d", step)
	}
	for _, check := range copies {
		check()
	}
	for k := range held {
		b.Drop(b.Get(&k))
	}
	b.Reclaim(1 << 20)
	checkBase(t, r, b, nil)
	ledgertest.Equal(t, b.pins.retired, nil, "retired records that are left")
	ledgertest.Equal(t, len(b.pins.active), 0, "pins that are left")
}

// forgetClosed drops the accounts that were closed below a horizon.
func forgetClosed(t *testing.T, b *Base, held map[ledger.Pubkey]*ledger.Account, horizon ledger.Slot) {
	t.Helper()
	for at, noted := b.NextClosed(horizon); noted; at, noted = b.NextClosed(horizon) {
		if at == 0 {
			continue
		}
		if a := held[*b.Key(at)]; !a.ForgottenBelow(horizon) {
			t.Errorf("%s was not closed below slot %d", a.Pubkey, horizon)
		}
		delete(held, *b.Key(at))
		b.Drop(at)
	}
	for _, a := range held {
		if a.ForgottenBelow(horizon) {
			t.Errorf("%s was closed at slot %d, and is left below %d", a.Pubkey, a.Since.Slot(), horizon)
		}
	}
}

func checkFrozenBase(t *testing.T, f *Frozen, want map[ledger.Pubkey]*ledger.Account) {
	t.Helper()
	n := 0
	f.Ascend(func(_ *ledger.Pubkey, r arena.Ref) bool {
		var a ledger.Account
		f.Unpack(r, &a)
		n++
		ledgertest.Equal(t, &a, want[a.Pubkey], "what is frozen of %s", a.Pubkey)
		return !t.Failed()
	})
	ledgertest.Holds(t, n == len(want) || t.Failed(), "%d accounts are frozen, want %d", n, len(want))
}

// sortedKeys returns the keys of the accounts that are selected.
func sortedKeys(held map[ledger.Pubkey]*ledger.Account, selected func(*ledger.Account) bool) (keys []ledger.Pubkey) {
	for k, a := range held {
		if selected(a) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b ledger.Pubkey) int { return a.Compare(&b) })
	return keys
}

// checkBase compares a base and its indexes with what they should have.
func checkBase(t *testing.T, r *rand.Rand, b *Base, held map[ledger.Pubkey]*ledger.Account) {
	t.Helper()
	live := make(map[arena.Ref]*ledger.Account)
	for n := range 2000 {
		k := new(key(n))
		a := held[*k]
		found, any := b.Get(k), b.Any(k)
		if (found != 0) != (a != nil) || found != 0 && b.Key(any).Prefix() != k.Prefix() {
			t.Fatalf("%s is record %d, %d has its prefix, want one: %v", k, found, any, a != nil)
		}
		if a != nil {
			live[found] = a
		}
	}
	if len(b.pins.retired) == 0 {
		checkStore(t, &b.store, live)
	}

	lens := [...]int{b.lists[ByProgram].listings.Len(), b.lists[ByWallet].listings.Len(), b.lists[ByDelegate].listings.Len(), b.lists[ByMint].listings.Len(), b.Len()}
	wantLens := [...]int{0, 0, 0, 0, len(held)}
	for n := range 21 {
		group := key(n)
		if n == 20 {
			group = ledger.Pubkey{}
		}
		for k, in := range [Kinds]func(*ledger.Account) bool{
			ByProgram: func(a *ledger.Account) bool { return a.Exists() && a.Known&ledger.FieldOwner != 0 && a.Owner == group },
			ByWallet:  func(a *ledger.Account) bool { return a.Exists() && a.Token != nil && a.Token.Owner == group },
			ByDelegate: func(a *ledger.Account) bool {
				return a.Exists() && a.Token != nil && a.Token.Details.Known && a.Token.Details.Value.Delegate == ledger.Some(group)
			},
			ByMint: func(a *ledger.Account) bool { return a.Exists() && a.Token != nil && a.Token.Mint == group },
		} {
			want, got := sortedKeys(held, in), []ledger.Pubkey(nil)
			wantLens[k] += len(want)
			most := 1 + r.IntN(50)
			var after ledger.Opt[ledger.Pubkey]
			for refs := make([]arena.Ref, most); len(refs) == most; {
				refs = b.Members(Group{Kind(k), group}, after, most)
				for _, at := range refs {
					got = append(got, *b.Key(at))
					after = ledger.Some(*b.Key(at))
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("kind %d: %d accounts of %s are listed, want %d others", k, len(got), group, len(want))
			}
		}
	}
	ledgertest.Equal(t, lens, wantLens, "accounts, and those in the indexes")
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
