package shard

import (
	"sync/atomic"

	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
)

// state is everything a shard holds. Who holds the lock of the shard touches it.
type state struct {
	self, shards int

	filter *ledger.Filter // which accounts come to be held; nil: all

	accounts *accounts
	mints    *mints

	hash   ledger.StateHash // of everything applied
	folded ledger.Version   // reads below it are refused

	// bases are the base states not yet folded: a rollback learns them again on top of
	// what it restores.
	bases      []baseChange
	tombstones *btree.BTreeG[tombstone] // folded ones

	scratch  [3]ledger.Account
	counters *Counters
}

type baseChange struct {
	version ledger.Version
	base    *ledger.BaseState
}

// Counters say how much a shard holds. They may be read by anybody.
type Counters struct {
	Accounts      atomic.Int64 // live, at the newest applied version
	TokenAccounts atomic.Int64
	OverlayCells  atomic.Int64 // account values of versions not yet folded
}

func newState(self, shards int) *state {
	return &state{
		self: self, shards: shards,
		accounts:   newAccounts(),
		mints:      newMints(),
		tombstones: newTombstones(),
		counters:   new(Counters),
	}
}

// shed releases the memory of stale nodes of all trees.
func (s *state) shed() {
	s.accounts.shed()
	shed(&s.mints.ofTree, s.mints.tree)
}

// count brings the counter that is the size of the overlay up to date.
func (s *state) count() { s.counters.OverlayCells.Store(int64(s.accounts.overlay.Len())) }

func (s *state) owns(prefix uint64) bool { return Of(prefix, s.shards) == s.self }

// writer puts values at one version. Direct ones go to the base.
type writer struct {
	*state
	version ledger.Version
	direct  bool
}

// setAccount replaces what is held at the writer's version (nil for nothing) of a key, where it
// was found, and keeps hash, indexes and counters in step. It reports whether a reader can tell the difference.
func (w writer) setAccount(f found, key *ledger.Pubkey, before, after *ledger.Account) (changed bool) {
	var term ledger.StateHash
	if changed = !ledger.SameToReaders(before, after); changed {
		term = after.StateTerm()
		w.hash.Sub(w.accounts.term(f, before))
		w.hash.Add(term)
		w.counters.count(before, -1)
		w.counters.count(after, 1)
	}
	switch {
	case !w.direct:
		now := w.accounts.write(f, w.version, key, before, after)
		now.term, now.termed = term, changed
	case after != nil:
		w.accounts.base.Put(f.base, after)
	default:
		w.accounts.base.Drop(f.base)
	}
	return changed
}

// count adds n to what an account, nil for none, counts as.
func (c *Counters) count(a *ledger.Account, n int64) {
	if a == nil || !a.Exists() {
		return
	}
	c.Accounts.Add(n)
	if a.Token != nil {
		c.TokenAccounts.Add(n)
	}
}

// setMint replaces the facts of a mint, nil for none.
func (w writer) setMint(key ledger.Pubkey, before, after *ledger.Mint) {
	if before == nil && after == nil {
		return
	}
	if w.direct {
		w.mints.putBase(key, after)
	} else {
		w.mints.put(w.version, key, after)
	}
	if before != nil {
		w.hash.Sub(before.StateTerm(key))
	}
	if after != nil {
		w.hash.Add(after.StateTerm(key))
	}
}
