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
	if err := restored.restoreAccounts(c); err != nil {
		return err
	}
	if err := restored.restoreMints(c); err != nil {
		return err
	}
	restored.hash, restored.folded = c.Hash, c.Version
	s.counters.Accounts.Store(restored.counters.Accounts.Load())
	s.counters.TokenAccounts.Store(restored.counters.TokenAccounts.Load())
	restored.counters = s.counters
	restored.tidy()
	s.state = restored
	return nil
}

// restoreAccounts packs the accounts and then builds their indexes.
func (s *state) restoreAccounts(c Content) error {
	load := s.accounts.base.Loader(c.Size)
	check := s.keyChecker("account")
	var wrong error
	err := c.Accounts(func(a *ledger.Account) bool {
		if wrong = check(&a.Pubkey); wrong != nil {
			return false
		}
		load.Add(a)
		s.counters.count(a, 1)
		return true
	})
	if err := cmp.Or(wrong, err); err != nil {
		return err
	}
	load.Finish()
	return nil
}

func (s *state) restoreMints(c Content) error {
	check := s.keyChecker("mint")
	var wrong error
	err := c.Mints(func(m ledger.MintWrite) bool {
		if wrong = check(&m.Pubkey); wrong != nil {
			return false
		}
		s.mints.tree.Load((&mintFacts{pubkey: m.Pubkey, mint: m.Mint}).entry())
		return true
	})
	packed.Pack(s.mints.tree)
	return cmp.Or(wrong, err)
}

// keyChecker returns a function that returns an error if a key is not this shard's or not above that of the call before.
func (s *state) keyChecker(what string) func(*ledger.Pubkey) error {
	var last ledger.Opt[ledger.Pubkey]
	return func(key *ledger.Pubkey) error {
		switch {
		case last.Known && key.Compare(&last.Value) <= 0:
			return fmt.Errorf("%s %s comes after %s: %w", what, key, last.Value, ledger.ErrCorrupt)
		case !s.owns(key.Prefix()):
			return fmt.Errorf("%s %s is not of shard %d of %d: %w", what, key, s.self, s.shards, ledger.ErrCorrupt)
		}
		last = ledger.Some(*key)
		return nil
	}
}
