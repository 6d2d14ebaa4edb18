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
	groups := []ledger.Pubkey{ledger.TokenProgram, ledger.Token2022Program, key(900_003)}
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
			s.Fold(folded, 0)
		}
	}
	inWallets := 0
	for v := ledger.Version(folded); v <= versions; v++ {
		for _, m := range []Members{{groups[0], false}, {groups[1], true}, {groups[2], false}, {groups[2], true}} {
			var after ledger.Opt[ledger.Pubkey]
			if random.IntN(3) > 0 {
				after = ledger.Some(keys[random.IntN(accounts)])
			}
			all, err := s.Accounts(keys, v, soon())
			if err != nil {
				t.Fatal(err)
			}
			var want []ledger.Account
			for _, a := range all {
				belongs := a.Exists() && (!m.ByWallet && a.Owner == m.Group || m.ByWallet && a.Token != nil && a.Token.Owner == m.Group)
				if belongs && (!after.Known || a.Pubkey.Compare(&after.Value) > 0) {
					want = append(want, a)
				}
			}
			if m.ByWallet {
				inWallets += len(want)
			}
			got := listAll(t, s, m, after, v, 1+random.IntN(150), random.IntN(2)*random.IntN(100))
			if !slices.EqualFunc(got, want, func(a, b ledger.Account) bool { return same(&a, &b) }) {
				t.Fatalf("version %d, %+v after %v: %d accounts, want %d", v, m, after, len(got), len(want))
			}
		}
	}
	if inWallets == 0 {
		t.Error("no wallet ever had an account")
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
