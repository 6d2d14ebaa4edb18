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
// fails, and checks that nothing of it stays.
func TestRestoreRefusesBadContent(t *testing.T) {
	var keys []ledger.Pubkey // of shard 1 of 2, in order
	for i := 0; len(keys) < 4; i++ {
		if k := key(i); Of(k.Prefix(), 2) == 1 {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, compareKeys)
	foreign := ledger.Pubkey{1}
	broken := errors.New("broken")
	tests := map[string]struct {
		accounts, mints []ledger.Pubkey
		fails           error // of the accounts, then of the mints
		mintsFail       error
		want            error
	}{
		"good":                   {keys, keys, nil, nil, nil},
		"empty":                  {nil, nil, nil, nil, nil},
		"account twice":          {[]ledger.Pubkey{keys[0], keys[1], keys[1]}, nil, nil, nil, ledger.ErrCorrupt},
		"accounts out of order":  {[]ledger.Pubkey{keys[1], keys[0]}, nil, nil, nil, ledger.ErrCorrupt},
		"another's account":      {[]ledger.Pubkey{foreign, keys[0]}, nil, nil, nil, ledger.ErrCorrupt},
		"mint twice":             {keys, []ledger.Pubkey{keys[2], keys[2]}, nil, nil, ledger.ErrCorrupt},
		"mints out of order":     {keys, []ledger.Pubkey{keys[2], keys[1]}, nil, nil, ledger.ErrCorrupt},
		"another's mint":         {keys, []ledger.Pubkey{foreign}, nil, nil, ledger.ErrCorrupt},
		"accounts fail":          {keys, keys, broken, nil, broken},
		"mints fail":             {keys, keys, nil, broken, broken},
		"wrong before it failed": {[]ledger.Pubkey{foreign}, nil, broken, nil, ledger.ErrCorrupt},
	}
	for name, tt := range tests {
		s := New(1, 2)
		err := s.Restore(Content{
			Version: 7,
			Accounts: func(visit func(*ledger.Account) bool) error {
				for _, k := range tt.accounts {
					if !visit(&ledger.Account{Pubkey: k, Lamports: 1}) {
						break
					}
				}
				return tt.fails
			},
			Mints: func(visit func(ledger.MintWrite) bool) error {
				for _, k := range tt.mints {
					if !visit(ledger.MintWrite{Pubkey: k}) {
						break
					}
				}
				return tt.mintsFail
			},
		})
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
	bytes := func(fill func()) uint64 {
		before := heapBytes()
		fill()
		return heapBytes() - before
	}
	grown, restored := newMints(), New(0, 1)
	put := bytes(func() {
		for i := range n {
			grown.putBase(key(i), new(ledger.Mint))
		}
	})
	c := content(nil)
	c.Mints = func(visit func(ledger.MintWrite) bool) error {
		grown.ascend(&ledger.Pubkey{}, newest, func(m *mintFacts) bool { return visit(ledger.MintWrite{Pubkey: m.pubkey}) })
		return nil
	}
	loaded := bytes(func() {
		if err := restored.Restore(c); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("%d bytes a mint put, %d restored", put/n, loaded/n)
	if loaded > put {
		t.Errorf("%d bytes a mint, want no more than the %d of random puts", loaded/n, put/n)
	}
	runtime.KeepAlive(grown)
	runtime.KeepAlive(restored)
}

// TestCountersAreReadDuringRestore reads counters while a shard is filled, as metrics are asked for
// during recovery. The race detector is the judge.
func TestCountersAreReadDuringRestore(t *testing.T) {
	s := New(0, 1)
	c := content(many(1000))
	began := make(chan struct{})
	accounts := c.Accounts
	c.Accounts = func(visit func(*ledger.Account) bool) error {
		close(began)
		return accounts(visit)
	}
	var reader sync.WaitGroup
	reader.Go(func() {
		<-began
		for s.Counters().Accounts.Load() == 0 {
			runtime.Gosched()
		}
	})
	if err := s.Restore(c); err != nil {
		t.Error(err)
	}
	reader.Wait()
}
