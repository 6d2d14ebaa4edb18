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
	r := restorer{state: newState(s.state.self, s.state.shards)}
	r.filter = s.state.filter
	for _, part := range []func(Content) error{r.restoreAccounts, r.restoreMints} {
		if err := part(c); err != nil {
			return err
		}
	}
	r.state.hash, r.state.folded = c.Hash, c.Version
	r.state.counters = s.counters
	r.state.counters.Accounts.Store(r.live)
	r.state.counters.TokenAccounts.Store(r.tokens)
	r.state.count()
	s.state = r.state
	return nil
}

// restorer fills the base of a new state.
type restorer struct {
	*state
	live, tokens int64
}

// restoreAccounts packs the accounts and then builds their indexes.
func (r *restorer) restoreAccounts(c Content) error {
	load := r.accounts.base.Loader(c.Size)
	var last ledger.Pubkey
	var wrong error
	first := true
	err := c.Accounts(func(a *ledger.Account) bool {
		if wrong = r.check("account", &a.Pubkey, &last, first); wrong != nil {
			return false
		}
		last, first = a.Pubkey, false
		load.Add(a)
		switch {
		case !a.Exists():
			r.tombstones.Set(tombstone{a.Since.Slot(), a.Pubkey})
			return true
		case a.Token != nil:
			r.tokens++
		}
		r.live++
		return true
	})
	if err := cmp.Or(wrong, err); err != nil {
		return err
	}
	load.Finish()
	return nil
}

func (r *restorer) restoreMints(c Content) error {
	var last ledger.Pubkey
	var wrong error
	first := true
	err := c.Mints(func(m ledger.MintWrite) bool {
		if wrong = r.check("mint", &m.Pubkey, &last, first); wrong != nil {
			return false
		}
		last, first = m.Pubkey, false
		r.mints.tree.Load((&mintFacts{pubkey: m.Pubkey, mint: m.Mint}).entry())
		return true
	})
	packed.Pack(r.mints.tree)
	return cmp.Or(wrong, err)
}

// check returns an error if key is not this shard's or not above last; first means that there is no last.
func (r *restorer) check(what string, key, last *ledger.Pubkey, first bool) error {
	switch {
	case !first && key.Compare(last) <= 0:
		return fmt.Errorf("%s %s comes after %s: %w", what, key, last, ledger.ErrCorrupt)
	case !r.owns(key.Prefix()):
		return fmt.Errorf("%s %s is not of shard %d of %d: %w", what, key, r.self, r.shards, ledger.ErrCorrupt)
	}
	return nil
}
