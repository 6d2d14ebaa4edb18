package shard

import (
	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
	"ledgerd/shard/packed"
)

// fold moves values of versions up to v into the base, at most budget of them, and reports
// whether there are more.
func (t *accounts) fold(v ledger.Version, budget int) (more bool) {
	n := t.overlay.upTo(v)
	// Prefetch all records and next values: the processor then loads many cache lines in parallel, which
	// makes a fold a third faster.
	for i := range min(n, budget) {
		c := t.overlay.cells.at(t.overlay.cells.nth(i))
		t.loaded += t.base.Load(c.base)
		if c.newer != 0 {
			t.loaded += uint64(t.overlay.cells.at(c.newer).base)
		}
	}
	for ; n > 0 && budget > 0; n, budget = n-1, budget-1 {
		t.foldOldest()
	}
	return n > 0
}

// foldOldest moves the oldest value from the overlay into the base.
func (t *accounts) foldOldest() {
	o := t.overlay
	p := o.cells.oldest
	c := o.cells.at(p)
	a, now := o.account(p, &t.folding), arena.Ref(0)
	if a != nil {
		now = t.base.Put(c.base, a)
	} else if c.base != 0 {
		t.base.Drop(c.base)
	}
	if c.newer == 0 {
		hash := arena.HashOf(&c.key)
		o.heads.Part(hash).Remove(hash, uint32(p))
	} else {
		o.cells.at(c.newer).base = now
	}
	for k := range t.base.ListedKinds() {
		if c.listed[k] { // the base lists the account from now on
			t.index.remove(packed.Group{Kind: k, Key: *k.Of(a)}, c.key)
		}
	}
	o.drop(c, t.base.Pinned())
}

// forget removes a tombstone from the base.
func (t *accounts) forget(r arena.Ref) {
	key := *t.base.Key(r)
	t.base.Drop(r)
	p := t.overlay.find(arena.HashOf(&key), &key)
	if p == 0 {
		return
	}
	// The account was opened again: its oldest value in the overlay must not refer to the freed record.
	c := t.overlay.cells.at(p)
	for t.overlay.cells.holds(c.older) {
		c = t.overlay.cells.at(c.older)
	}
	c.base = 0
}
