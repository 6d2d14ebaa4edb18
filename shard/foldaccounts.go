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
	for end := t.overlay.cells.nth(n); n > 0 && budget > 0; n, budget = n-1, budget-1 {
		t.foldOldest(end, onFolded)
	}
	return n > 0
}

// foldOldest removes the oldest value from the overlay. It moves it into the base unless this fold, which ends
// before position end, also has a newer value of the key.
func (t *accounts) foldOldest(end position, onFolded func(now *ledger.Account)) {
	o := t.overlay
	p := o.cells.oldest
	c := o.cells.at(p)
	now, skipped := c.base, c.newer != 0 && c.newer-p < end-p
	if !skipped {
		now = t.foldValue(p, onFolded)
	}
	if c.newer == 0 {
		o.removeHead(p, &c.key)
	} else if now != c.base || c.moved {
		newer := o.cells.at(c.newer)
		newer.base, newer.moved = now, true
	}
	for k := range kinds {
		if c.listed[k] {
			t.unlist(k, p, skipped)
		}
	}
	o.drop(c)
}

// foldValue moves a value into the base and returns its record, 0 if it is absent.
func (t *accounts) foldValue(p position, onFolded func(now *ledger.Account)) arena.Ref {
	before := t.overlay.cells.at(p).base
	a := t.overlay.account(p, &t.folding[0])
	if a != nil {
		onFolded(a)
		return t.base.Put(before, a)
	}
	if before != 0 {
		t.base.Drop(before)
	}
	return 0
}

// unlist removes the index entry of a value that leaves the overlay. If the base does not list the account instead,
// because the value was skipped, the next value takes the entry over, provided that it is in the same group.
func (t *accounts) unlist(k kind, p position, skipped bool) {
	c := t.overlay.cells.at(p)
	was := k.of(t.overlay.account(p, &t.folding[0]))
	if skipped {
		newer := t.overlay.account(c.newer, &t.folding[1])
		if sameGroup(was, k.of(newer)) {
			t.overlay.cells.at(c.newer).listed[k] = true
			return
		}
	}
	t.index.remove(group{k, *was}, c.key)
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
