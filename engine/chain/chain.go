package chain

import (
	"fmt"
	"math"

	"ledgerd/engine/ledger"
)

// Chain is the tree of blocks from the newest finalized one on, with the branch of it that is the chain.
type Chain struct {
	Finalized *Node // nil before the first block, like Confirmed and Tip
	Confirmed *Node
	Tip       *Node

	Waiting          Waiting
	UnfinalizedBytes int // of the blocks above the finalized one, on the chain and beside it

	nodes   map[BlockID]*Node
	slots   map[ledger.Slot][]*Node // in arrival order
	orphans map[BlockID]struct{}    // abandoned, with a slot above finalized; none is in nodes
	noted   map[statusNote]struct{} // of blocks above the finalized slot; a repeated status decides nothing

	// recovered is the slot up to which a source may show orphans that only the previous process knew. It is
	// unbounded until the first block is appended after Resume, and then the slot of the tip before that block.
	recovered ledger.Slot
}

// statusNote is a status that decided something about a block. The log holds a record of each.
type statusNote struct {
	block  BlockID
	status ledger.Status
}

// unbounded is above every slot.
const unbounded = ledger.Slot(math.MaxUint64)

// New returns a chain without a block.
func New() *Chain {
	return &Chain{
		nodes:   make(map[BlockID]*Node),
		slots:   make(map[ledger.Slot][]*Node),
		orphans: make(map[BlockID]struct{}),
		noted:   make(map[statusNote]struct{}),
	}
}

// Resume notes that the blocks of the chain come from the log: the source, which goes on after the finalized block, may
// show blocks again that belong to branches which nobody here knows.
func (c *Chain) Resume() { c.recovered = unbounded }

// Node returns a block of the tree, nil if it is not there.
func (c *Chain) Node(id BlockID) *Node { return c.nodes[id] }

// TipSlot returns the slot of the tip, 0 before the first block.
func (c *Chain) TipSlot() ledger.Slot {
	if c.Tip == nil {
		return 0
	}
	return c.Tip.Slot()
}

// Placement says where a block belongs that arrived.
type Placement uint8

const (
	Placed    Placement = iota // its parent is known
	Duplicate                  // the same block is in the tree or waits already
	Orphaned                   // it belongs to an abandoned branch
	Waits                      // its parent is not known yet
)

// Place puts a block above the finalized slot where it belongs: in the tree, beside the chain, or among the waiting blocks.
// It returns the node of a block that is in the tree now or was before. An error means that the source contradicts itself or what is final.
func (c *Chain) Place(b *ledger.Block) (*Node, Placement, error) {
	id := BlockID{b.Slot, b.Blockhash}
	if n := c.nodes[id]; n != nil {
		return n, Duplicate, nil
	}
	parent := c.parentOf(b)
	if _, gone := c.orphans[id]; gone && parent == nil {
		return nil, Orphaned, nil
	}
	if b.ParentSlot >= b.Slot {
		return nil, 0, fmt.Errorf("block %d names slot %d as its parent", b.Slot, b.ParentSlot)
	}
	if err := c.contradictsBase(b); err != nil {
		return nil, 0, err
	}
	below := b.ParentSlot < c.Finalized.Slot()
	switch beside := parent == nil && b.ParentSlot == c.Finalized.Slot() && !c.Finalized.Base; {
	case (below || beside) && b.Slot <= c.recovered && b.Status < ledger.Confirmed:
		c.Abandon(id)
		return nil, Orphaned, nil
	case below:
		return nil, 0, fmt.Errorf("block %d builds on slot %d, below the finalized slot %d", b.Slot, b.ParentSlot, c.Finalized.Slot())
	}
	if parent != nil {
		return c.Attach(b, parent), Placed, nil
	}
	if c.buildsOnOrphan(b) {
		c.Abandon(id)
		return nil, Orphaned, nil
	}
	if !c.Waiting.add(b) {
		return nil, Duplicate, nil
	}
	return nil, Waits, nil
}

// contradictsBase returns an error for a block that says it builds on the slot of base state and means
// another block there.
func (c *Chain) contradictsBase(b *ledger.Block) error {
	f := c.Finalized
	if !f.Base || b.Status < ledger.Confirmed || b.ParentSlot != f.Slot() ||
		!b.PreviousBlockhash.Known || b.PreviousBlockhash.Value == f.Block.Blockhash {
		return nil
	}
	return fmt.Errorf("block %d builds on another block at slot %d than the one that was imported: the source shows another ledger", b.Slot, f.Slot())
}

// parentOf returns the node that b builds on, nil if it is not here. Where the source does
// not tell the parent's hash, the chain's block at that slot is meant.
func (c *Chain) parentOf(b *ledger.Block) *Node {
	if b.PreviousBlockhash.Known {
		return c.nodes[BlockID{b.ParentSlot, b.PreviousBlockhash.Value}]
	}
	return c.atSlot(b.ParentSlot)
}

// Holds reports whether n is still in the tree.
func (c *Chain) Holds(n *Node) bool { return c.nodes[n.ID()] == n }

// atSlot returns the block at slot that is on the chain, else the one that came last and was not given
// up, else the one that came last.
func (c *Chain) atSlot(slot ledger.Slot) *Node {
	var found *Node
	for _, n := range c.slots[slot] {
		if n.OnChain() {
			return n
		}
		if found == nil || c.IsGivenUp(found) || !c.IsGivenUp(n) {
			found = n
		}
	}
	return found
}

// IsGivenUp reports whether n, or an ancestor of it beside the chain, is dead.
func (c *Chain) IsGivenUp(n *Node) bool {
	for ; n != nil && !n.OnChain(); n = n.Parent {
		if n.Dead {
			return true
		}
	}
	return false
}

// NoteStatus notes a status of a block and reports whether it is new: a repeated one decides nothing. A block that is
// confirmed is noted so with its ancestors.
func (c *Chain) NoteStatus(id BlockID, status ledger.Status) bool {
	if _, again := c.noted[statusNote{id, status}]; again {
		return false
	}
	c.noted[statusNote{id, status}] = struct{}{}
	if n := c.nodes[id]; n != nil && n.Parent != nil && status == ledger.StatusConfirmed {
		c.NoteStatus(n.Parent.ID(), status)
	}
	return true
}

// isDead reports whether b was called dead.
func (c *Chain) isDead(b *ledger.Block) bool {
	_, dead := c.noted[statusNote{BlockID{b.Slot, b.Blockhash}, ledger.StatusDead}]
	return dead
}

// Revive makes n and its ancestors not dead: the source confirmed n.
func (c *Chain) Revive(n *Node) {
	for ; n != nil && !n.OnChain(); n = n.Parent {
		n.Dead = false
	}
}

// BlockFor returns the block in the tree that a status is about, nil if there is none. A block that was given up is
// only named by its hash: another may come at its slot.
func (c *Chain) BlockFor(e *ledger.SlotStatus) *Node {
	if e.Blockhash.Known {
		return c.nodes[BlockID{e.Slot, e.Blockhash.Value}]
	}
	if n := c.atSlot(e.Slot); !c.IsGivenUp(n) {
		return n
	}
	return nil
}

// buildsOnOrphan reports whether the parent of b, which is not here, was given up.
func (c *Chain) buildsOnOrphan(b *ledger.Block) bool {
	if !b.PreviousBlockhash.Known {
		for id := range c.orphans {
			if id.Slot == b.ParentSlot {
				return true
			}
		}
		return false
	}
	_, gone := c.orphans[BlockID{b.ParentSlot, b.PreviousBlockhash.Value}]
	return gone
}

// Attach makes b a child of parent, beside the chain until it is moved there.
func (c *Chain) Attach(b *ledger.Block, parent *Node) *Node {
	n := &Node{Block: b, Parent: parent, Dead: c.isDead(b)}
	c.nodes[n.ID()] = n
	c.slots[b.Slot] = append(c.slots[b.Slot], n)
	delete(c.orphans, n.ID())
	if parent != nil {
		parent.children = append(parent.children, n)
		c.UnfinalizedBytes += b.SizeBytes()
	}
	return n
}

// Begin makes b the root of the tree: it is finalized, and the caller appends it.
func (c *Chain) Begin(b *ledger.Block) *Node {
	c.Finalized = c.Attach(b, nil)
	c.Confirmed = c.Finalized
	return c.Finalized
}

// Below returns the block so many blocks below the tip, nil where finality has passed it.
func (c *Chain) Below(blocks int) *Node {
	n := c.Tip
	for ; n != nil && blocks > 0; blocks-- {
		n = n.Parent
	}
	return n
}
