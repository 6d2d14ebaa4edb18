package shard

import (
	"errors"
	"maps"
	"sync"
	"testing"

	"ledgerd/engine/ledger"
)

// TestFrozenStaysAsItWas walks frozen copies again and again while their shard applies, rolls back,
// folds, forgets, sheds and answers, and compares them with plain maps of their version.
func TestFrozenStaysAsItWas(t *testing.T) {
	r := seeded(t, 1)
	s := start(t)
	model := make(map[ledger.Pubkey]ledger.Lamports) // 0 for a tombstone
	var v, final ledger.Version
	write := func(into map[ledger.Pubkey]ledger.Lamports, n int) {
		var writes []ledger.AccountWrite
		for range n {
			w := lamports(key(r.IntN(3000)), ledger.Lamports(r.IntN(4)))
			if _, held := into[w.Pubkey]; held || w.Lamports != 0 {
				into[w.Pubkey] = w.Lamports
			}
			writes = append(writes, w)
		}
		v++
		applyBlock(t, s, v, writes...)
	}
	ended := make(chan struct{})
	var walkers sync.WaitGroup
	defer walkers.Wait()
	defer close(ended)
	walk := func(frozen *Frozen, want map[ledger.Pubkey]ledger.Lamports) {
		for {
			checkFrozen(t, frozen, want)
			select {
			case <-ended:
				return
			default:
			}
		}
	}
	for round := range 40 {
		for range 1 + r.IntN(5) {
			write(model, 200)
		}
		final = v
		if round%10 == 3 {
			// Some more that must not be seen, since the freeze is of an older version.
			above := maps.Clone(model)
			write(above, 500)
			frozen, err := s.Freeze(final).Wait()
			if err != nil {
				t.Fatal(err)
			}
			want := maps.Clone(model)
			walkers.Go(func() { walk(frozen, want) })
		} else {
			write(maps.Clone(model), 100)
		}
		v++
		wait(t, s.Rollback(v, final+1))
		if round%2 == 1 {
			// Forgets no tombstone, so that the model needs no memory.
			s.Fold(v, 0)
		}
		if _, _, err := s.Account(key(round), v, soon()); err != nil {
			t.Fatal(err)
		}
	}
}

func checkFrozen(t *testing.T, frozen *Frozen, want map[ledger.Pubkey]ledger.Lamports) {
	n := 0
	var last ledger.Pubkey
	frozen.Accounts(func(a *ledger.Account) bool {
		if amount, held := want[a.Pubkey]; !held || amount != a.Lamports {
			t.Errorf("%s is frozen with %d lamports, want %d (held: %v)", a.Pubkey, a.Lamports, amount, held)
			return false
		}
		if n > 0 && a.Pubkey.Compare(&last) <= 0 {
			t.Errorf("%s comes after %s", a.Pubkey, last)
			return false
		}
		n, last = n+1, a.Pubkey
		return true
	})
	if n != len(want) && !t.Failed() {
		t.Errorf("%d accounts are frozen, want %d", n, len(want))
	}
}

// TestFreezeOfFoldedVersionIsRefused freezes below, at and above what is folded, and a shard that
// stopped.
func TestFreezeOfFoldedVersionIsRefused(t *testing.T) {
	s := start(t)
	for v := ledger.Version(1); v <= 4; v++ {
		applyBlock(t, s, v, lamports(key(1), ledger.Lamports(v)))
	}
	s.Fold(3, 0)
	for v := ledger.Version(1); v <= 4; v++ {
		frozen, err := s.Freeze(v).Wait()
		if v < 3 {
			if !errors.Is(err, ErrFolded) || frozen != nil {
				t.Errorf("version %d: %v, %v, want that it is folded", v, frozen, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("version %d: %v", v, err)
		}
		frozen.Accounts(func(a *ledger.Account) bool {
			if a.Lamports != ledger.Lamports(v) {
				t.Errorf("version %d is frozen with %d lamports", v, a.Lamports)
			}
			return true
		})
	}
	stopped := New(0, 1)
	close(stopped.done)
	if _, err := stopped.Freeze(1).Wait(); err == nil {
		t.Error("a stopped shard froze")
	}
}

// TestFrozenWalkStops has visitors refuse to go on.
func TestFrozenWalkStops(t *testing.T) {
	s := start(t)
	var writes []ledger.AccountWrite
	for i := range 10 {
		w := owned(key(i), 1, ledger.TokenProgram)
		w.Mint = &ledger.Mint{Decimals: 1}
		writes = append(writes, w)
	}
	applyBlock(t, s, 1, writes[:5]...)
	s.Fold(1, 0)
	applyBlock(t, s, 2, writes[5:]...)
	frozen, err := s.Freeze(2).Wait()
	if err != nil {
		t.Fatal(err)
	}
	for stop := 1; stop <= 10; stop++ {
		accounts, mints := 0, 0
		frozen.Accounts(func(*ledger.Account) bool { accounts++; return accounts < stop })
		frozen.Mints(func(ledger.MintWrite) bool { mints++; return mints < stop })
		if accounts != stop || mints != stop {
			t.Errorf("%d accounts and %d mints were visited, want %d", accounts, mints, stop)
		}
	}
}

// TestFreezeCountsAsShedding checks that a copy that is kept makes no further one due, and that
// writes still do, at the usual pace.
func TestFreezeCountsAsShedding(t *testing.T) {
	s := newState(0, 1)
	tree, due := s.accounts.programs, shedAfter
	write := func(n int) {
		for i := range n {
			tree.insert(ledger.SystemProgram, key(i%100))
		}
	}
	write(due)
	kept := copyOf(&tree.ofTree, tree.tree)
	write(due)
	if tree.shed(); tree.ofTree.writes != due {
		t.Errorf("%d writes are counted after a copy and %d writes, want that the copy began anew", tree.ofTree.writes, due)
	}
	write(1)
	if tree.shed(); tree.ofTree.writes != 0 {
		t.Errorf("%d writes are counted, want that the tree shed", tree.ofTree.writes)
	}
	if kept.Len() != 100 {
		t.Errorf("the copy lists %d, want 100", kept.Len())
	}
}
