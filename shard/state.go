package shard

import (
	"sync/atomic"

	"ledgerd/engine/ledger"
	"ledgerd/shard/packed"
)

// state is the content of a shard. Shard.mu guards it.
type state struct {
	self, shards int

	filter *ledger.Filter // which accounts are stored; nil: all

	accounts *accounts
	mints    *mints

	hash   ledger.StateHash // of the newest version
	folded ledger.Version   // reads below it fail with ErrFolded

	// bases are the base states that are not yet folded: a rollback merges them again into what
	// it restores.
	bases []baseChange

	scratch  [3]ledger.Account // for apply
	counters Counters
}

// baseChange is base state that is not folded.
type baseChange struct {
	at     Point
	base   *ledger.BaseState
	writes map[ledger.Pubkey][]baseWrite // those of this shard, in their order
}

// baseWrite is one write of base state: of an account or, if that is nil, of a mint.
type baseWrite struct {
	account *ledger.AccountWrite
	mint    *ledger.Mint
}

// Counters are the sizes of a shard. Any goroutine may read them.
type Counters struct {
	Accounts      atomic.Int64 // live ones at the newest applied version
	TokenAccounts atomic.Int64
	OverlayCells  atomic.Int64 // account values of versions not yet folded
	OverlayBytes  atomic.Int64 // the memory of the overlay: values, token holdings, hash table, index
	BaseBytes     atomic.Int64 // the memory of the base: all that the shard stores of accounts and mints outside the overlay
	Retired       atomic.Int64 // records that only frozen copies may still read
}

func newState(self, shards int) *state {
	return &state{
		self: self, shards: shards,
		accounts: newAccounts(packed.ByMint), mints: newMints(),
	}
}

// maxReclaimed bounds the records that are reclaimed after an item of work.
const maxReclaimed = 4096

// tidy updates the counters and reclaims records. It is called after each item of work.
func (s *state) tidy() {
	s.counters.OverlayCells.Store(int64(s.accounts.overlay.Len()))
	s.counters.OverlayBytes.Store(int64(s.accounts.overlay.sizeBytes() + s.accounts.index.sizeBytes() + s.mints.overlayBytes()))
	s.counters.BaseBytes.Store(int64(s.accounts.base.SizeBytes() + s.mints.baseBytes()))
	s.accounts.base.Reclaim(maxReclaimed)
	s.counters.Retired.Store(int64(s.accounts.base.Retired()))
}

func (s *state) owns(prefix uint64) bool { return Of(prefix, s.shards) == s.self }

// writer writes values of one version: into the overlay, or with direct into the base.
type writer struct {
	*state
	Point
	direct bool
}

// atHorizon returns the account a as the writer's record sees it: nil for a tombstone below the record's horizon.
func (w writer) atHorizon(a *ledger.Account) *ledger.Account { return atHorizon(w.Horizon, a) }

func atHorizon(horizon ledger.Slot, a *ledger.Account) *ledger.Account {
	if a != nil && a.ForgottenBelow(horizon) {
		return nil
	}
	return a
}

// setAccount replaces account before of a key by after; either is nil for none. l is where the key was found. It
// updates hash, indexes and counters, and reports whether the two differ for readers.
func (w writer) setAccount(l location, key *ledger.Pubkey, before, after *ledger.Account) (changed bool) {
	var term ledger.StateHash
	if changed = !ledger.SameToReaders(before, after); changed {
		term = after.StateTerm()
		w.hash.Sub(w.accounts.term(l, before))
		w.hash.Add(term)
		w.counters.count(before, -1)
		w.counters.count(after, 1)
	}
	switch {
	case !w.direct:
		w.accounts.write(l, w.Version, key, before, after).term = term
	case after != nil:
		w.accounts.base.Put(l.base, after)
	default:
		w.accounts.base.Drop(l.base)
	}
	return changed
}

// count adds n to the counters that count a; a is nil for none.
func (c *Counters) count(a *ledger.Account, n int64) {
	if a == nil || !a.Exists() {
		return
	}
	c.Accounts.Add(n)
	if a.Token != nil {
		c.TokenAccounts.Add(n)
	}
}

// setMint replaces the facts of a mint if they change; before and after are nil for none.
func (w writer) setMint(key ledger.Pubkey, before, after *ledger.Mint) {
	if before == after || before != nil && after != nil && *before == *after {
		return
	}
	if w.direct {
		w.mints.putBase(key, after)
	} else {
		w.mints.put(w.Version, key, after)
	}
	if before != nil {
		w.hash.Sub(before.StateTerm(key))
	}
	if after != nil {
		w.hash.Add(after.StateTerm(key))
	}
}
