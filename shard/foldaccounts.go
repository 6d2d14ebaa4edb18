package shard

import (
	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// fold moves values of versions up to v into the base, at most budget of them, and reports
// whether there are more. It calls onFolded with each account that it put into the base.
func (t *accounts) fold(v ledger.Version, budget int, onFolded func(now *ledger.Account)) (more bool) {
	n := t.overlay.upTo(v)
	// Prefetch all records: the processor then loads many cache lines in parallel, which
	// makes a fold a third faster.
	for i := range min(n, budget) {
		t.loaded += t.base.Load(t.overlay.cells.at(t.overlay.cells.nth(i)).base)
	}
	for ; n > 0 && budget > 0; n, budget = n-1, budget-1 {
		t.foldOldest(onFolded)
	}
	return n > 0
}

// foldOldest moves the oldest value from the overlay into the base.
func (t *accounts) foldOldest(onFolded func(now *ledger.Account)) {
	o := t.overlay
	p := o.cells.oldest
	c := o.cells.at(p)
	a, now := o.account(p, &t.folding), arena.Ref(0)
	if a != nil {
		onFolded(a)
		now = t.base.Put(c.base, a)
	} else if c.base != 0 {
		t.base.Drop(c.base)
	}
	if c.newer == 0 {
		o.removeHead(p, &c.key)
	} else if now != c.base || c.moved {
		newer := o.cells.at(c.newer)
		newer.base, newer.moved = now, true
	}
	for k := range kinds {
		if c.listed[k] { // from here on the base lists it
			t.index.remove(group{k, *k.of(a)}, c.key)
		}
	}
	o.drop(c)
}

// forget removes a tombstone from the base.
func (t *accounts) forget(key *ledger.Pubkey) {
	t.base.Drop(t.base.Get(key))
	p := t.overlay.find(arena.HashOf(key), key)
	if p == 0 {
		return
	}
	// The account was opened again: its oldest value in the overlay must not refer to the freed record, and only the
	// overlay has the account now.
	c := t.overlay.cells.at(p)
	for t.overlay.cells.holds(c.older) {
		c = t.overlay.cells.at(c.older)
	}
	c.base, c.moved = 0, true
	if !c.absent {
		t.index.insert(group{}, *key)
		c.listed[everyAccount] = true
	}
}
