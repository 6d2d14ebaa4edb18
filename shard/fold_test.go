package shard

import (
	"maps"
	"testing"

	"ledgerd/engine/ledger"
)

// TestFoldLeavesNoStaleIndexEntries moves accounts between programs and wallets, closes them,
// undoes some of it, folds all, and compares the indexes with what the accounts say.
func TestFoldLeavesNoStaleIndexEntries(t *testing.T) {
	r := seeded(t, 1)
	for round := range 30 {
		s := start(t)
		v := ledger.Version(0)
		for range 25 {
			var writes []ledger.AccountWrite
			for range r.IntN(6) {
				w := owned(key(r.IntN(12)), ledger.Lamports(r.IntN(3)), ledger.TokenProgram)
				if r.IntN(2) == 0 {
					w.Token = &ledger.TokenAccount{Mint: key(100), Owner: key(200 + r.IntN(3))}
				} else {
					w.Owner = key(300 + r.IntN(3))
				}
				writes = append(writes, w)
			}
			v++
			applyBlock(t, s, v, writes...)
			switch folded := s.state.folded; {
			case r.IntN(4) == 0 && v > folded+1:
				first := folded + 1 + ledger.Version(r.IntN(int(v-folded)))
				v++
				wait(t, s.Rollback(v, first))
			case r.IntN(5) == 0:
				s.Fold(folded+ledger.Version(r.IntN(int(v-folded)+1)), 0)
			}
			v++
			settle(t, s, v)
		}
		s.Fold(v, ledger.Slot(v)+1)
		settle(t, s, v+1)
		checkIndexes(t, s.state)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
}

// checkIndexes recomputes both indexes, the hash and the counters of a shard that is folded
// up to its newest version.
func checkIndexes(t *testing.T, s *state) {
	t.Helper()
	programs, holders := make(map[membership]bool), make(map[membership]bool)
	var hash ledger.StateHash
	live, tokens := 0, 0
	s.accounts.ascend(&ledger.Pubkey{}, newest, func(a *ledger.Account) bool {
		if !a.Exists() {
			t.Errorf("the tombstone of %s is left", a.Pubkey)
			return true
		}
		live++
		programs[membership{a.Owner, a.Pubkey}] = true
		if a.Token != nil {
			tokens++
			holders[membership{a.Token.Owner, a.Pubkey}] = true
		}
		hash.Add(a.StateTerm())
		return true
	})
	groups := []ledger.Pubkey{ledger.TokenProgram}
	for i := range 3 {
		groups = append(groups, key(200+i), key(300+i))
	}
	for name, x := range map[string]struct {
		over     *index
		byWallet bool
		want     map[membership]bool
	}{
		"programs": {s.accounts.programs, false, programs}, "holders": {s.accounts.holders, true, holders},
	} {
		if n := x.over.tree.Len(); n != 0 {
			t.Errorf("%s: %d entries are left of the overlay", name, n)
		}
		got := make(map[membership]bool)
		for _, g := range groups {
			for _, r := range s.accounts.base.Members(nil, &g, x.byWallet, ledger.Opt[ledger.Pubkey]{}, 1000) {
				got[membership{g, *s.accounts.base.Key(r)}] = true
			}
		}
		if !maps.Equal(got, x.want) {
			t.Errorf("%s: %d entries, want %d", name, len(got), len(x.want))
		}
	}
	if hash != s.hash {
		t.Errorf("state hash %s, recomputed %s", s.hash, hash)
	}
	if c := s.counters; c.Accounts.Load() != int64(live) || c.TokenAccounts.Load() != int64(tokens) || c.OverlayCells.Load() != 0 {
		t.Errorf("counted %d accounts, %d tokens, %d cells, want %d, %d, 0", c.Accounts.Load(), c.TokenAccounts.Load(), c.OverlayCells.Load(), live, tokens)
	}
	if s.tombstones.Len() != 0 || len(s.bases) > 1 { // the one that came after the fold
		t.Errorf("%d tombstones and %d base states are left", s.tombstones.Len(), len(s.bases))
	}
}

// TestTombstonesEndAtTheirSlot closes accounts at slots of their own and folds step by step.
func TestTombstonesEndAtTheirSlot(t *testing.T) {
	s := start(t)
	applyBlock(t, s, 1, lamports(key(1), 5), lamports(key(2), 5), lamports(key(3), 5))
	applyBlock(t, s, 2, lamports(key(1), 0), lamports(key(3), 0))
	applyBlock(t, s, 3, lamports(key(2), 0))
	applyBlock(t, s, 4, lamports(key(3), 7)) // opened again
	for below, want := range []string{"123", "123", "123", "23", "3"} {
		s.Fold(ledger.Version(4+below), ledger.Slot(below))
		settle(t, s, ledger.Version(5+below))
		got := ""
		for i := 1; i <= 3; i++ {
			if _, found, err := s.Account(key(i), ledger.Version(5+below), soon()); err != nil {
				t.Fatal(err)
			} else if found {
				got += string(rune('0' + i))
			}
		}
		if got != want {
			t.Errorf("tombstones below slot %d forgotten: held are %q, want %q", below, got, want)
		}
	}
}

// TestFoldRefusesOlderReads reads at, above and below a folded version.
func TestFoldRefusesOlderReads(t *testing.T) {
	s := start(t)
	for v := ledger.Version(1); v <= 5; v++ {
		applyBlock(t, s, v, lamports(key(1), ledger.Lamports(v)))
	}
	s.Fold(3, 0)
	settle(t, s, 6)
	for v := ledger.Version(1); v <= 6; v++ {
		a, _, err := s.Account(key(1), v, soon())
		_, listErr := s.List(Members{Group: ledger.SystemProgram}, ledger.Opt[ledger.Pubkey]{}, 10, v, soon(), nil)
		switch want := ledger.Lamports(min(v, 5)); {
		case v < 3 && (err != ErrFolded || listErr != ErrFolded):
			t.Errorf("version %d: %v, %v, want that it is folded", v, err, listErr)
		case v >= 3 && (err != nil || listErr != nil || a.Lamports != want):
			t.Errorf("version %d: %d, %v, %v, want %d", v, a.Lamports, err, listErr, want)
		}
	}
}
