package shard

import (
	"slices"
	"testing"

	"ledgerd/engine/ledger"
)

// TestListsArePagedWithoutHoles lists more members than one query looks at, half of which left
// their group at a version not folded yet, at the version before and after.
func TestListsArePagedWithoutHoles(t *testing.T) {
	const members = 3*pageKeys + 11
	s := start(t)
	program, other := key(900_001), key(900_002)
	var first, second []ledger.AccountWrite
	var all, stay []ledger.Pubkey
	for i := range members {
		all = append(all, key(i))
		first = append(first, owned(key(i), 1, program))
		if i%2 == 0 {
			second = append(second, owned(key(i), 1, other))
		} else {
			stay = append(stay, key(i))
		}
	}
	order := func(a, b ledger.Pubkey) int { return a.Compare(&b) }
	slices.SortFunc(all, order)
	slices.SortFunc(stay, order)
	applyBlock(t, s, 1, first...)
	applyBlock(t, s, 2, second...)
	for v, want := range map[ledger.Version][]ledger.Pubkey{1: all, 2: stay} {
		for _, limit := range []int{1, 100, 10_000} {
			got := walk(t, limit, func(after ledger.Opt[ledger.Pubkey]) (Page, error) {
				return s.List(Members{Group: program}, after, limit, v, soon(), nil)
			})
			if !slices.Equal(got, want) {
				t.Errorf("version %d, %d a page: %d members, want %d", v, limit, len(got), len(want))
			}
		}
	}
	got := walk(t, pageKeys, func(after ledger.Opt[ledger.Pubkey]) (Page, error) { return s.Scan(after, 2, soon()) })
	if !slices.Equal(got, all) {
		t.Errorf("scanned %d accounts, want %d", len(got), len(all))
	}
}

// walk reads pages until the list says that it is done.
func walk(t *testing.T, limit int, read func(ledger.Opt[ledger.Pubkey]) (Page, error)) (keys []ledger.Pubkey) {
	t.Helper()
	var page Page
	for !page.Done {
		var err error
		if page, err = read(page.Next); err != nil {
			t.Fatal(err)
		}
		if len(page.Accounts) > limit {
			t.Fatalf("a page of %d accounts, want at most %d", len(page.Accounts), limit)
		}
		for i := range page.Accounts {
			keys = append(keys, page.Accounts[i].Pubkey)
		}
	}
	return keys
}

// TestMintsAreScannedInOrder teaches mints in two versions and reads both.
func TestMintsAreScannedInOrder(t *testing.T) {
	const mints = pageKeys + 20
	s := start(t)
	base := &ledger.BaseState{Slot: 1}
	var want []ledger.Pubkey
	for i := range mints {
		base.Mints = append(base.Mints, ledger.MintWrite{Pubkey: key(i), Mint: ledger.Mint{Decimals: 6}})
		want = append(want, key(i))
	}
	slices.SortFunc(want, func(a, b ledger.Pubkey) int { return a.Compare(&b) })
	wait(t, s.ApplyBase(1, base, true))
	closing := owned(want[0], 0, ledger.TokenProgram)
	applyBlock(t, s, 2, closing)
	for v, want := range map[ledger.Version][]ledger.Pubkey{1: want, 2: want[1:]} {
		var got []ledger.Pubkey
		var after ledger.Opt[ledger.Pubkey]
		for done := false; !done; {
			page, err := s.ScanMints(after, v, soon())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range page.Mints {
				got, after = append(got, m.Pubkey), ledger.Some(m.Pubkey)
			}
			done = page.Done
		}
		if !slices.Equal(got, want) {
			t.Errorf("version %d: %d mints, want %d", v, len(got), len(want))
		}
	}
}
