package shard

import (
	"cmp"
	"fmt"

	"ledgerd/engine/ledger"
	"ledgerd/shard/packed"
)

// Content is the content of a shard at one version, as read from a snapshot.
type Content struct {
	Version ledger.Version
	// Hash is the shard's part of the state hash. It is not checked, so the parts may be
	// any that sum up to the state hash of the whole ledger.
	Hash ledger.StateHash
	// Size is an estimate of the number of accounts, for which memory is reserved; it may be 0.
	Size int
	// Accounts calls visit for every account of the shard in pubkey order, tombstones
	// included, until it returns false. The shard does not keep the account passed to visit.
	Accounts func(visit func(*ledger.Account) bool) error
	// Mints does the same for mint facts.
	Mints func(visit func(ledger.MintWrite) bool) error
}

// Restore replaces the content of the shard by c; reads below c's version then fail. It must be
// called before Run. Errors of c are returned as they are; content that is out of order or
// of another shard gives an error that matches ledger.ErrCorrupt. After an error the shard is
// unchanged.
func (s *Shard) Restore(c Content) error {
	restored := newState(s.state.self, s.state.shards)
	restored.filter = s.state.filter
	packing, counters := restored.accounts.base.Loader(c.Size), restored.counters
	if err := load(restored, "account", c.Accounts, func(a *ledger.Account) ledger.Pubkey {
		packing.Add(a)
		counters.count(a, 1)
		return a.Pubkey
	}); err != nil {
		return err
	}
	packing.Finish()
	if err := load(restored, "mint", c.Mints, func(m ledger.MintWrite) ledger.Pubkey {
		restored.mints.tree.Load((&mintFacts{pubkey: m.Pubkey, mint: m.Mint}).entry())
		return m.Pubkey
	}); err != nil {
		return err
	}
	packed.Pack(restored.mints.tree)
	restored.hash, restored.folded = c.Hash, c.Version
	s.counters.Accounts.Store(counters.Accounts.Load())
	s.counters.TokenAccounts.Store(counters.TokenAccounts.Load())
	restored.counters = s.counters
	restored.tidy()
	s.state = restored
	return nil
}

// load calls add, which returns the key, with all that each visits, up to the first that is not of the shard or not above the one before.
func load[T any](s *state, what string, each func(visit func(T) bool) error, add func(T) ledger.Pubkey) error {
	var last ledger.Opt[ledger.Pubkey]
	var wrong error
	err := each(func(value T) bool {
		key := add(value)
		switch {
		case last.Known && key.Compare(&last.Value) <= 0:
			wrong = fmt.Errorf("%s %s comes after %s: %w", what, key, last.Value, ledger.ErrCorrupt)
		case !s.owns(key.Prefix()):
			wrong = fmt.Errorf("%s %s is not of shard %d of %d: %w", what, key, s.self, s.shards, ledger.ErrCorrupt)
		}
		last = ledger.Some(key)
		return wrong == nil
	})
	return cmp.Or(wrong, err)
}
