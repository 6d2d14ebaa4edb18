package geyser

import (
	"context"
	"maps"
	"slices"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/upstream"
)

// status takes what is said of a slot. It is passed on if the block was emitted, and noted if it waits.
func (c *chain) status(ctx context.Context, e *ledger.SlotStatus) error {
	if c.rooted && e.Slot < c.root.slot {
		return nil
	}
	if c.rooted && e.Slot == c.root.slot && e.Blockhash.Known && e.Blockhash.Value != c.root.hash && e.Status != ledger.StatusDead {
		return errForeign
	}
	id, ok := c.meant(e)
	switch {
	case !ok && e.Status != ledger.StatusDead && c.gone(e):
		c.forgive(blockID{e.Slot, e.Blockhash.Value})
		return errNotDead
	case !ok:
		return nil
	case e.Status == ledger.StatusDead:
		return c.dead(ctx, id)
	case !c.holds(id):
		w := c.waiting[id]
		c.claim(w, e.Status)
		if !c.rooted {
			return c.tryBegin(ctx, w)
		}
		return nil
	}
	status := e.Status
	if status == ledger.StatusFinalized && id != c.root && !c.held[id].grew {
		status, c.final = ledger.StatusConfirmed, id
	}
	if err := c.emit(ctx, id.status(status)); err != nil {
		return err
	}
	c.confirm(id)
	if status == ledger.StatusFinalized && id.slot > c.root.slot {
		c.moveRoot(id)
	}
	return nil
}

// doubt takes back what was said to be confirmed above the root, and reports whether there was anything.
func (c *chain) doubt() bool {
	if c.confirmed == c.root {
		return false
	}
	for id, h := range c.held {
		h.confirmed = id == c.root
		c.held[id] = h
	}
	c.confirmed, c.changed = c.root, true
	return true
}

// meant returns which block a status is about. Where it does not say, because the session did not show
// the slot, it can only be the one at that slot that is confirmed: an earlier session may have been
// shown a block that is none.
func (c *chain) meant(e *ledger.SlotStatus) (blockID, bool) {
	if e.Blockhash.Known {
		id := blockID{e.Slot, e.Blockhash.Value}
		return id, c.holds(id) || c.waiting[id] != nil
	}
	if e.Status == ledger.StatusDead {
		return blockID{}, false
	}
	for _, id := range c.slots[e.Slot] {
		if c.held[id].confirmed {
			return id, true
		}
	}
	return blockID{}, false
}

// gone reports whether a status is about a block that was given up.
func (c *chain) gone(e *ledger.SlotStatus) bool {
	_, gone := c.gaveUp[blockID{e.Slot, e.Blockhash.Value}]
	return gone && e.Blockhash.Known
}

// giveUp notes that a block is dead, or builds on one that is.
func (c *chain) giveUp(b *ledger.Block) {
	c.gaveUp[idOf(b)] = blockID{b.ParentSlot, b.PreviousBlockhash.Value}
}

// forgive takes a block that was given up and is confirmed, and what it builds on, for good. What else was given
// up may have been for their sake: when it is shown again it is seen what becomes of it.
func (c *chain) forgive(id blockID) {
	parent, gone := c.gaveUp[id]
	if !gone {
		return
	}
	for ; gone; parent, gone = c.gaveUp[id] {
		c.forgiven[id] = struct{}{}
		delete(c.gaveUp, id)
		id = parent
	}
	clear(c.gaveUp)
}

// claim notes what was said of a waiting block; those that it builds on are at least confirmed.
func (c *chain) claim(w *waitingBlock, s ledger.Status) {
	for w != nil && w.claimed < s {
		w.claimed = s
		c.changed = true
		w, s = c.waitingParent(w), ledger.StatusConfirmed
	}
}

// waitingParent returns the waiting block that w builds on, nil if there is none.
func (c *chain) waitingParent(w *waitingBlock) *waitingBlock {
	b := w.block
	if b.PreviousBlockhash.Known {
		return c.waiting[blockID{b.ParentSlot, b.PreviousBlockhash.Value}]
	}
	for id, p := range c.waiting {
		if id.slot == b.ParentSlot {
			return p
		}
	}
	return nil
}

// confirm notes that a held block is confirmed, with all that it builds on.
func (c *chain) confirm(id blockID) {
	if id.slot > c.confirmed.slot {
		c.confirmed = id
	}
	var news []mintNews
	for h, ok := c.held[id]; ok && !h.confirmed; h, ok = c.held[id] {
		news = append(news, h.mints)
		h.confirmed, h.mints = true, mintNews{}
		c.held[id] = h
		id = h.parent
	}
	for _, n := range slices.Backward(news) {
		c.mints.confirmed(n)
	}
}

// moveRoot makes a held block the root: what is below comes to nothing any more.
func (c *chain) moveRoot(id blockID) {
	c.root = id
	for slot := range c.slots {
		if slot < id.slot {
			for _, old := range c.slots[slot] {
				delete(c.held, old)
			}
			delete(c.slots, slot)
		}
	}
	maps.DeleteFunc(c.gaveUp, func(old, _ blockID) bool { return old.slot <= id.slot })
	maps.DeleteFunc(c.forgiven, func(old blockID, _ struct{}) bool { return old.slot < id.slot })
	for _, w := range c.waiting {
		if w.block.Slot <= id.slot {
			c.unwait(w)
		}
	}
}

// dead drops a block that its node gave up, with all that builds on it, and passes that on if it
// was emitted. It is the word of one node about a slot: a block that was confirmed in spite of it stays, and so does
// what is final.
func (c *chain) dead(ctx context.Context, id blockID) error {
	c.stats.Dead()
	if _, ok := c.forgiven[id]; ok || c.rooted && id == c.root {
		c.stats.Failed(upstream.Equivocation)
		return nil
	}
	if w := c.waiting[id]; w != nil {
		c.dropWaiting(w)
		return nil
	}
	if err := c.emit(ctx, id.status(ledger.StatusDead)); err != nil {
		return err
	}
	gone := map[blockID]bool{id: true}
	for grew := true; grew; {
		grew = false
		for child, h := range c.held {
			if gone[h.parent] && !gone[child] {
				gone[child], grew = true, true
			}
		}
	}
	for id := range gone {
		c.gaveUp[id] = c.held[id].parent
		delete(c.held, id)
		if c.slots[id.slot] = slices.DeleteFunc(c.slots[id.slot], func(o blockID) bool { return o == id }); len(c.slots[id.slot]) == 0 {
			delete(c.slots, id.slot)
		}
	}
	if gone[c.confirmed] {
		c.confirmed = c.root
	}
	for _, w := range c.waiting {
		if b := w.block; b.PreviousBlockhash.Known && gone[blockID{b.ParentSlot, b.PreviousBlockhash.Value}] {
			c.dropWaiting(w)
		}
	}
	c.changed = true
	return nil
}

// dropWaiting drops a waiting block that is dead and those that wait for it.
func (c *chain) dropWaiting(w *waitingBlock) {
	for todo := []*waitingBlock{w}; len(todo) > 0; todo = todo[1:] {
		c.giveUp(todo[0].block)
		todo = append(todo, c.childrenOf(todo[0].block)...)
		c.unwait(todo[0])
	}
}

// tryBegin makes a waiting block that is confirmed the root, once another block builds on it. The stream must not have
// shown its parent at another slot than its head says.
func (c *chain) tryBegin(ctx context.Context, w *waitingBlock) error {
	b := w.block
	if len(c.childrenOf(b)) == 0 {
		return nil
	}
	if b.PreviousBlockhash.Known && c.showsElsewhere(b.PreviousBlockhash.Value, b.ParentSlot) {
		return errParentSlot
	}
	claimed := w.claimed
	c.unwait(w)
	if err := c.beginWith(ctx, b); err != nil {
		return err
	}
	return c.status(ctx, idOf(b).status(claimed))
}

// gap is a part of the chain that was not shown.
type gap struct {
	after     blockID     // the newest confirmed block held
	upTo      ledger.Slot // the slot of the first block behind the gap names as its parent's
	confirmed bool        // that block is confirmed
}

// gap returns what is missing: the lowest waiting block whose parent nobody expects any more. A
// confirmed one goes before. It is an error if a confirmed block can never find its parent.
func (c *chain) gap(expects func(ledger.Slot) bool) (g gap, open bool, err error) {
	if !c.rooted {
		return gap{}, false, nil // whatever comes first may be the root
	}
	g.after = c.confirmed
	for _, w := range c.waiting {
		parent := w.block.ParentSlot
		switch {
		case c.waitingParent(w) != nil:
			continue
		case parent < c.root.slot || parent == c.root.slot && w.block.PreviousBlockhash.Known:
			if w.claimed != 0 {
				return gap{}, false, errForeign
			}
			continue // an orphan
		case parent <= c.confirmed.slot:
			if w.claimed == 0 {
				continue // of a branch that comes to nothing
			}
			return gap{after: c.root, upTo: parent, confirmed: true}, true, nil
		case w.claimed == 0 && expects(parent):
			continue
		}
		claimed := w.claimed != 0
		if !open || claimed && !g.confirmed || claimed == g.confirmed && parent < g.upTo {
			g.upTo, g.confirmed, open = parent, claimed, true
		}
	}
	return g, open, nil
}
