package shard

import (
	"slices"
	"testing"

	"ledgerd/engine/ledger"
)

// TestListsAreWhatTheAccountsSay moves accounts between programs and wallets in many versions, some
// of which are folded, and compares lists at each with the accounts one by one.
func TestListsAreWhatTheAccountsSay(t *testing.T) {
	const accounts, versions, folded = 600, 40, 11
	random := seeded(t, 5)
	s := start(t)
	groups := []ledger.Pubkey{key(900_001), key(900_002), key(900_003)}
	write := func(i int) ledger.AccountWrite {
		w := owned(key(i), ledger.Lamports(random.IntN(4)), groups[random.IntN(3)])
		if random.IntN(2) == 0 {
			w.Token = &ledger.TokenAccount{Owner: groups[random.IntN(3)], Mint: groups[0], Amount: 1}
		}
		return w
	}
	base := &ledger.BaseState{}
	var keys []ledger.Pubkey
	for i := range accounts {
		keys = append(keys, key(i))
		if i%3 > 0 {
			w := write(i)
			w.Lamports++
			base.Accounts = append(base.Accounts, w)
		}
	}
	slices.SortFunc(keys, func(a, b ledger.Pubkey) int { return a.Compare(&b) })
	wait(t, s.ApplyBase(1, base, true))
	for v := ledger.Version(2); v <= versions; v++ {
		var writes []ledger.AccountWrite
		for range 1 + random.IntN(60) {
			writes = append(writes, write(random.IntN(accounts)))
		}
		applyBlock(t, s, v, writes...)
		if v == 2*folded {
			s.Fold(folded, nil, 0)
		}
	}
	for v := ledger.Version(folded); v <= versions; v++ {
		for _, m := range []Members{{groups[0], false}, {groups[1], true}, {groups[2], false}, {groups[2], true}} {
			var after ledger.Opt[ledger.Pubkey]
			if random.IntN(3) > 0 {
				after = ledger.Some(keys[random.IntN(accounts)])
			}
			var want []ledger.Account
			for _, k := range keys {
				a, found, err := s.Account(k, v, soon())
				if err != nil {
					t.Fatal(err)
				}
				belongs := found && a.Exists() && (!m.ByWallet && a.Owner == m.Group || m.ByWallet && a.Token != nil && a.Token.Owner == m.Group)
				if belongs && (!after.Known || k.Compare(&after.Value) > 0) {
					want = append(want, a)
				}
			}
			got := listAll(t, s, m, after, v, 1+random.IntN(150), random.IntN(2)*random.IntN(100))
			if !slices.EqualFunc(got, want, func(a, b ledger.Account) bool { return same(&a, &b) }) {
				t.Fatalf("version %d, %+v after %v: %d accounts, want %d", v, m, after, len(got), len(want))
			}
		}
	}
}

// listAll reads a list to its end, so many a page, all into one slice with some room.
func listAll(t *testing.T, s *Shard, m Members, after ledger.Opt[ledger.Pubkey], v ledger.Version, limit, room int) []ledger.Account {
	t.Helper()
	page := Page{Next: after, Accounts: make([]ledger.Account, 0, room)}
	for !page.Done {
		before := page.Accounts
		var err error
		if page, err = s.List(m, page.Next, limit, v, soon(), before); err != nil {
			t.Fatal(err)
		}
		if n := len(page.Accounts) - len(before); n < 0 || n > limit {
			t.Fatalf("%d accounts more, want at most %d", n, limit)
		}
	}
	return page.Accounts
}

// TestAscentReadsWhatLookUpsRead reads keys of an overlay in order, some of which it does not have,
// at several versions.
func TestAscentReadsWhatLookUpsRead(t *testing.T) {
	const keys = 500
	random := seeded(t, 6)
	over := newAccounts().overlay
	for v := range ledger.Version(60) {
		for range random.IntN(40) {
			a := &ledger.Account{Pubkey: key(random.IntN(keys)), Lamports: ledger.Lamports(v) + 1}
			if random.IntN(4) == 0 {
				over.put(v, a, nil)
			} else {
				over.put(v, a, a)
			}
		}
	}
	var probes []ledger.Account
	for i := range keys {
		probes = append(probes, ledger.Account{Pubkey: key(i)})
	}
	slices.SortFunc(probes, func(a, b ledger.Account) int { return a.Pubkey.Compare(&b.Pubkey) })
	for v := ledger.Version(0); v < 60; v += 7 {
		for _, share := range []int{1, 3, 50} {
			walk := over.ascent(v)
			for i := range probes {
				if random.IntN(share) > 0 {
					continue
				}
				got, ok := walk.at(&probes[i])
				if want, wantOK := over.over(&probes[i], v); got != want || ok != wantOK {
					t.Fatalf("version %d, key %d of %d: %v %t, want %v %t", v, i, keys, got, ok, want, wantOK)
				}
			}
			walk.release()
		}
	}
}
