package shard

import (
	"cmp"
	"fmt"

	"ledgerd/engine/ledger"
	"ledgerd/shard/packed"
)

// Content is what a shard held at one version, as a snapshot keeps it.
type Content struct {
	Version ledger.Version
	// Hash is the shard's part of the state hash. It is taken as it is, so any split among
	// the shards will do that sums up to the whole.
	Hash ledger.StateHash
	// Size is about how many accounts there are; 0 will do. Room is made for so many.
	Size int
	// Accounts calls visit for every account of the shard in pubkey order, tombstones
	// included, until it returns false. The shard keeps nothing of an account.
	Accounts func(visit func(*ledger.Account) bool) error
	// Mints does so for all mint facts.
	Mints func(visit func(ledger.MintWrite) bool) error
}

// Restore makes c what the shard holds, and c's version the oldest that can be read. It is
// called before Run. Errors of c are returned as they are; content that is out of order or
// another shard's gives one that matches ledger.ErrCorrupt. After an error the shard holds
// what it held before.
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

// restoreAccounts packs accounts as they come and makes the trees of them when all are there.
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

// check returns why key cannot come after last, unless it is the first, or is not this shard's.
func (r *restorer) check(what string, key, last *ledger.Pubkey, first bool) error {
	switch {
	case !first && key.Compare(last) <= 0:
		return fmt.Errorf("%s %s comes after %s: %w", what, key, last, ledger.ErrCorrupt)
	case !r.owns(key.Prefix()):
		return fmt.Errorf("%s %s is not of shard %d of %d: %w", what, key, r.self, r.shards, ledger.ErrCorrupt)
	}
	return nil
}
