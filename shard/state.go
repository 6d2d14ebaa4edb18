package shard

import (
	"cmp"
	"sync/atomic"

	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
)

// state is everything a shard holds. Who holds the lock of the shard touches it.
type state struct {
	self, shards int

	filter *ledger.Filter // which accounts come to be held; nil: all

	accounts     *accounts
	mints        *table[mintFacts]
	transactions *table[heldTransaction]
	blocks       *table[HeldBlock]

	hash   ledger.StateHash // of everything applied
	folded ledger.Version   // reads below it are refused

	// bases are the base states not yet folded: a rollback learns them again on top of
	// what it restores.
	bases      []baseChange
	tombstones *btree.BTreeG[tombstone] // folded ones

	mint     mintFacts // a key for look-ups
	scratch  [3]ledger.Account
	counters *Counters
}

// mintFacts is a mint with its key.
type mintFacts struct {
	pubkey ledger.Pubkey
	mint   ledger.Mint
}

type baseChange struct {
	version ledger.Version
	base    *ledger.BaseState
}

// Counters say how much a shard holds. They may be read by anybody.
type Counters struct {
	Accounts      atomic.Int64 // live, at the newest applied version
	TokenAccounts atomic.Int64
	Transactions  atomic.Int64 // about: those of versions not yet folded may count twice
	OverlayCells  atomic.Int64 // account values of versions not yet folded
}

func newState(self, shards int) *state {
	return &state{
		self: self, shards: shards,
		accounts: newAccounts(),
		mints: newTable(keyed[mintFacts]{
			prefix:  func(m *mintFacts) uint64 { return m.pubkey.Prefix() },
			compare: func(a, b *mintFacts) int { return a.pubkey.Compare(&b.pubkey) },
		}),
		transactions: newTable(keyed[heldTransaction]{
			prefix:  func(t *heldTransaction) uint64 { return t.signature.Prefix() },
			compare: func(a, b *heldTransaction) int { return a.signature.Compare(&b.signature) },
		}),
		blocks: newTable(keyed[HeldBlock]{
			prefix:  func(b *HeldBlock) uint64 { return uint64(b.Block.Slot) },
			compare: func(a, b *HeldBlock) int { return cmp.Compare(a.Block.Slot, b.Block.Slot) },
		}),
		tombstones: newTombstones(),
		counters:   new(Counters),
	}
}

// shed releases the memory of stale nodes of all trees.
func (s *state) shed() {
	s.accounts.shed()
	s.mints.shed()
	s.transactions.shed()
	s.blocks.shed()
}

// count brings the counters that are sizes of trees up to date.
func (s *state) count() {
	s.counters.Transactions.Store(int64(s.transactions.base.Len() + s.transactions.Len()))
	s.counters.OverlayCells.Store(int64(s.accounts.overlay.Len()))
}

func (s *state) owns(prefix uint64) bool { return Of(prefix, s.shards) == s.self }

// mintAt returns the facts of a mint at version v, nil if none are known.
func (s *state) mintAt(key *ledger.Pubkey, v ledger.Version) *ledger.Mint {
	s.mint.pubkey = *key
	if m := s.mints.at(&s.mint, v); m != nil {
		return &m.mint
	}
	return nil
}

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
		w.accounts.base.put(f.base, after)
	default:
		w.accounts.base.drop(f.base)
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
	var value *mintFacts
	if after != nil {
		value = &mintFacts{key, *after}
	}
	if w.direct {
		w.mints.putBase(&mintFacts{pubkey: key}, value)
	} else {
		w.mints.put(w.version, &mintFacts{pubkey: key}, value)
	}
	if before != nil {
		w.hash.Sub(before.StateTerm(key))
	}
	if after != nil {
		w.hash.Add(after.StateTerm(key))
	}
}
