package shard

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"

	"ledgerd/engine/ledger"
)

// TestRestoreRefusesBadContent gives a shard content that is not a shard's, and content that
// fails, and checks that nothing of it stays. Counters are read meanwhile.
func TestRestoreRefusesBadContent(t *testing.T) {
	type list = []ledger.Pubkey
	var keys list // of shard 1 of 2, in order
	for i := 0; len(keys) < 4; i++ {
		if k := key(i); Of(k.Prefix(), 2) == 1 {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, compareKeys)
	foreign, broken := ledger.Pubkey{1}, errors.New("broken")
	for name, tt := range map[string]struct {
		accounts, mints list
		fails           error // of the accounts, then of the mints
		mintsFail       error
		want            error
	}{
		"good":                   {keys, keys, nil, nil, nil},
		"empty":                  {nil, nil, nil, nil, nil},
		"account twice":          {list{keys[0], keys[1], keys[1]}, nil, nil, nil, ledger.ErrCorrupt},
		"accounts out of order":  {list{keys[1], keys[0]}, nil, nil, nil, ledger.ErrCorrupt},
		"another's account":      {list{foreign, keys[0]}, nil, nil, nil, ledger.ErrCorrupt},
		"mint twice":             {keys, list{keys[2], keys[2]}, nil, nil, ledger.ErrCorrupt},
		"mints out of order":     {keys, list{keys[2], keys[1]}, nil, nil, ledger.ErrCorrupt},
		"another's mint":         {keys, list{foreign}, nil, nil, ledger.ErrCorrupt},
		"accounts fail":          {keys, keys, broken, nil, broken},
		"mints fail":             {keys, keys, nil, broken, broken},
		"wrong before it failed": {list{foreign}, nil, broken, nil, ledger.ErrCorrupt},
	} {
		s := New(1, 2)
		each := func(keys list, fails error, visit func(ledger.Pubkey) bool) error {
			slices.Values(keys)(visit)
			return fails
		}
		var metrics sync.WaitGroup
		metrics.Go(func() { s.Counters().Accounts.Load() }) // the race detector is the judge
		err := s.Restore(Content{
			Version: 7,
			Accounts: func(visit func(*ledger.Account) bool) error {
				return each(tt.accounts, tt.fails, func(k ledger.Pubkey) bool { return visit(&ledger.Account{Pubkey: k, Lamports: 1}) })
			},
			Mints: func(visit func(ledger.MintWrite) bool) error {
				return each(tt.mints, tt.mintsFail, func(k ledger.Pubkey) bool { return visit(ledger.MintWrite{Pubkey: k}) })
			},
		})
		metrics.Wait()
		if !errors.Is(err, tt.want) || tt.want == broken && err != broken {
			t.Errorf("%s: Restore: %v, want %v", name, err, tt.want)
		}
		if held, want := s.Counters().Accounts.Load(), int64(len(tt.accounts)); err == nil && held != want || err != nil && (held != 0 || s.state.accounts.base.Len() != 0) {
			t.Errorf("%s: %d accounts are held after %v", name, held, err)
		}
	}
}

// TestRestoredMintsTakeNoMoreMemory compares what the tree of restored mints takes with one of mints put in random order.
func TestRestoredMintsTakeNoMoreMemory(t *testing.T) {
	const n = 100_000
	before := heapBytes()
	grown, restored := newMints(), New(0, 1)
	for i := range n {
		grown.putBase(key(i), new(ledger.Mint))
	}
	put := heapBytes() - before
	c := content(nil)
	c.Mints = func(visit func(ledger.MintWrite) bool) error {
		grown.ascend(&ledger.Pubkey{}, newest, func(m *mintFacts) bool { return visit(ledger.MintWrite{Pubkey: m.pubkey}) })
		return nil
	}
	must(t, restored.Restore(c))
	if loaded := heapBytes() - before - put; loaded > put {
		t.Errorf("%d bytes a mint, want no more than the %d of random puts", loaded/n, put/n)
	}
	runtime.KeepAlive(grown)
	runtime.KeepAlive(restored)
}
