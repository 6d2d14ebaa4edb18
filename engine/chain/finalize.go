package chain

import (
	"maps"
	"slices"

	"ledgerd/engine/ledger"
)

// Finalize makes n, which is on the chain, the newest finalized block and forgets every
// branch that does not hold it.
func (c *Chain) Finalize(n *Node) {
	for above, a := n, n.Parent; a != nil; above, a = a, a.Parent {
		for _, child := range a.children {
			if child != above {
				c.forget(child)
			}
		}
		c.remove(a)
	}
	if n.Parent != nil {
		c.UnfinalizedBytes -= n.Block.UnfinalizedBytes()
	}
	maps.DeleteFunc(c.notes, func(o note, _ bool) bool {
		builtOn := o.status == orphaned && o.block.Slot == n.Slot() // a late block may build on an orphan of this slot
		return o.block.Slot <= n.Slot() && !builtOn
	})
	c.Waiting = slices.DeleteFunc(c.Waiting, func(w *Node) bool { return w.Slot() <= n.Slot() })
	n.Parent, n.Provisional = nil, false
	// The shards hold the block now; only its header is of use here.
	n.Block = n.Block.WithoutWrites()
	n.Block.Transactions = nil
	c.Finalized = n
	if c.Confirmed.Slot() < n.Slot() {
		c.Confirmed = n
	}
}

// forget removes n and all that builds on it, and remembers them as orphans.
func (c *Chain) forget(n *Node) {
	branch := []*Node{n}
	for i := 0; i < len(branch); i++ {
		branch = append(branch, branch[i].children...)
		c.Abandon(branch[i].ID())
		c.remove(branch[i])
	}
}

// Abandon remembers a block as an orphan, and drops the waiting blocks that descend from it as orphans too.
func (c *Chain) Abandon(id ledger.BlockID) {
	branch := []ledger.BlockID{id}
	for i := 0; i < len(branch); i++ {
		c.notes[note{branch[i], orphaned}] = true
		for child := c.WaitingChild(branch[i]); child != nil; child = c.WaitingChild(branch[i]) {
			branch = append(branch, child.ID())
		}
	}
}

// remove takes n out of the tree's index. The caller drops the links to it.
func (c *Chain) remove(n *Node) {
	if n.Parent != nil {
		c.UnfinalizedBytes -= n.Block.UnfinalizedBytes()
	}
	left := slices.DeleteFunc(c.nodes[n.Slot()], func(o *Node) bool { return o == n })
	if c.nodes[n.Slot()] = left; len(left) == 0 {
		delete(c.nodes, n.Slot())
	}
}
