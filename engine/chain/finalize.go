package chain

import (
	"slices"
)

// Finalize makes n, which is on the chain, the newest finalized block and forgets every
// branch that does not hold it.
func (c *Chain) Finalize(n *Node) {
	keep := map[*Node]bool{}
	for a := n; a != nil; a = a.Parent {
		keep[a] = true
	}
	for a := n.Parent; a != nil; a = a.Parent {
		for _, child := range a.children {
			if !keep[child] {
				c.forget(child)
			}
		}
		c.remove(a)
	}
	if n.Parent != nil {
		c.UnfinalizedBytes -= n.Block.SizeBytes()
	}
	for id := range c.orphans {
		if id.Slot <= n.Slot() {
			delete(c.orphans, id)
		}
	}
	for s := range c.noted {
		if s.block.Slot <= n.Slot() {
			delete(c.noted, s)
		}
	}
	n.Parent = nil
	// The shards hold the block now; only its header is of use here.
	header := *n.Block
	header.Transactions, header.Accounts, header.Mints = nil, nil, nil
	n.Block = &header
	c.Finalized = n
	if c.Confirmed.Slot() < n.Slot() {
		c.Confirmed = n
	}
	c.Waiting.dropUpTo(n.Slot())
}

// forget removes n and all that builds on it, and remembers them as orphans.
func (c *Chain) forget(n *Node) {
	for _, child := range n.children {
		c.forget(child)
	}
	c.Abandon(n.ID())
	c.remove(n)
}

// Abandon remembers a block as an orphan, with the waiting blocks that descend from it.
func (c *Chain) Abandon(id BlockID) {
	c.orphans[id] = struct{}{}
	for {
		child, ok := c.Waiting.ChildOf(id)
		if !ok {
			return
		}
		c.Abandon(BlockID{child.Block.Slot, child.Block.Blockhash})
	}
}

// remove takes n out of the maps. The caller drops the links to it.
func (c *Chain) remove(n *Node) {
	delete(c.nodes, n.ID())
	if n.Parent != nil {
		c.UnfinalizedBytes -= n.Block.SizeBytes()
	}
	at := slices.DeleteFunc(c.slots[n.Slot()], func(o *Node) bool { return o == n })
	if len(at) == 0 {
		delete(c.slots, n.Slot())
		return
	}
	c.slots[n.Slot()] = at
}
