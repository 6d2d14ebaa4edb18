package chain

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"ledgerd/engine/ledger"
)

// View is the part of a Chain that the owner shows to others. It is a copy and valid until the owner changes the Chain.
type View struct {
	Finalized *Node // the root of the tree; nil before the first block, like Confirmed and Tip
	Confirmed *Node // the newest confirmed block of the chain
	Tip       *Node

	Waiting          []*Node // the blocks whose parent has not arrived, in slot order
	UnfinalizedBytes int     // of the blocks above the finalized one, on the chain and beside it
}

// TipSlot returns the slot of the tip, 0 before the first block.
func (v View) TipSlot() ledger.Slot {
	if v.Tip == nil {
		return 0
	}
	return v.Tip.Slot()
}

// Chain is the tree of blocks from the newest finalized one on, with the branch of it that is the chain.
type Chain struct {
	View

	Stream bool // the source is a stream: a block without a parent is known to contradict what is final only once it is confirmed

	nodes map[ledger.Slot][]*Node // the tree, by slot in arrival order
	notes map[note]bool

	// recovered is the slot up to which a source may show orphans that only the previous process knew. It is
	// unbounded until the first block is appended after Resume, and then the slot of the tip before that block.
	recovered ledger.Slot
}

// note is a fact about a block above the finalized slot, whether the block is held or not: the source gave it a status,
// of which the log holds a record, or it was orphaned. No orphan is in the tree.
type note struct {
	block  ledger.BlockID
	status ledger.Status
}

// orphaned is the status of a note that says that the block was dropped with an abandoned branch.
const orphaned ledger.Status = 0

// unbounded is above every slot.
const unbounded = ledger.Slot(math.MaxUint64)

// New returns a chain without a block.
func New() *Chain {
	return &Chain{nodes: make(map[ledger.Slot][]*Node), notes: make(map[note]bool)}
}

// Resume notes that the blocks of the chain come from the log: the source, which goes on after the finalized block, may
// show blocks again that belong to branches which nobody here knows.
func (c *Chain) Resume() { c.recovered = unbounded }

// Node returns a block of the tree, nil if it is not there.
func (c *Chain) Node(id ledger.BlockID) *Node {
	for _, n := range c.nodes[id.Slot] {
		if n.Block.Blockhash == id.Hash {
			return n
		}
	}
	return nil
}

// Placement says where an arrived block belongs.
type Placement uint8

const (
	Placed    Placement = iota // its parent is known
	Duplicate                  // the same block is in the tree or waits already
	Orphaned                   // it belongs to an abandoned branch
	Waits                      // its parent is not known yet
)

// Place puts a block where it belongs: into the tree, beside the chain, or among the waiting blocks. The block's slot must be
// above the finalized slot and above its parent's, or the block must be one that a stream shows before the first block. Place
// returns the node of a block that is in the tree now or was before. An error means that the source contradicts what is final.
func (c *Chain) Place(b *ledger.Block) (*Node, Placement, error) {
	id := idOf(b)
	if n := c.Node(id); n != nil {
		return n, Duplicate, nil
	}
	if parent := c.find(b.ParentSlot, b.PreviousBlockhash); parent != nil {
		return c.Attach(b, parent), Placed, nil
	}
	if final, sure := c.Finalized, b.Status >= ledger.Confirmed; !c.Stream {
		stranger := b.ParentSlot <= final.Slot() // its parent is below the finalized block, or another block of that slot
		orphan := c.notes[note{id, orphaned}] || c.buildsOnOrphan(b) || stranger && !sure && b.Slot <= c.recovered
		switch {
		case orphan && b.Status != ledger.Finalized:
			c.Abandon(id)
			return nil, Orphaned, nil
		case orphan, b.ParentSlot < final.Slot(), stranger && sure && final.Base:
			return nil, 0, Contradicts(strayed, b.Slot, b.ParentSlot, final.Slot())
		}
	}
	if c.waitingAt(id.Slot, ledger.Some(id.Hash)) != nil {
		return nil, Duplicate, nil
	}
	c.Waiting = append(c.Waiting, c.newNode(b))
	slices.SortStableFunc(c.Waiting, func(a, b *Node) int { return cmp.Compare(a.Slot(), b.Slot()) })
	return nil, Waits, nil
}

// strayed is the error for a block that can never find its place.
const strayed = "block %d builds on slot %d, beside or below the finalized slot %d: another ledger, or a fork below finality"

// isAt reports whether a block is at a slot and has a hash, or any hash if hash is not known.
func isAt(id ledger.BlockID, slot ledger.Slot, hash ledger.Opt[ledger.Hash]) bool {
	return id.Slot == slot && (!hash.Known || hash.Value == id.Hash)
}

// buildsOn reports whether b may be a child of a block: the source may not tell the parent's hash.
func buildsOn(b *ledger.Block, parent ledger.BlockID) bool {
	return isAt(parent, b.ParentSlot, b.PreviousBlockhash)
}

// buildsOnOrphan reports whether the parent of b, which is not in the tree, was abandoned.
func (c *Chain) buildsOnOrphan(b *ledger.Block) bool {
	for n := range c.notes {
		if n.status == orphaned && buildsOn(b, n.block) {
			return true
		}
	}
	return false
}

// find returns the block of the tree at a slot with a hash, nil if it is not there. Where the hash is not known it returns
// the block at the slot that is on the chain, else the one that came last and was not given up, else the one that came last.
func (c *Chain) find(slot ledger.Slot, hash ledger.Opt[ledger.Hash]) *Node {
	if hash.Known {
		return c.Node(ledger.BlockID{Slot: slot, Hash: hash.Value})
	}
	var found *Node
	for _, n := range c.nodes[slot] {
		if n.OnChain() {
			return n
		}
		if found == nil || found.IsGivenUp() || !n.IsGivenUp() {
			found = n
		}
	}
	return found
}

// NoteStatus notes a status of a block and reports whether it is new: a repeated one decides nothing. A block that is
// confirmed is noted so with its ancestors.
func (c *Chain) NoteStatus(id ledger.BlockID, status ledger.Status) bool {
	if c.notes[note{id, status}] {
		return false
	}
	c.notes[note{id, status}] = true
	if n := c.Node(id); n != nil && status == ledger.StatusConfirmed {
		for p := n.Parent; p != nil && !c.notes[note{p.ID(), status}]; p = p.Parent {
			c.notes[note{p.ID(), status}] = true
		}
	}
	return true
}

// maxStatuses bounds what Statuses returns: statuses of higher blocks lie in the log after the newest finalized one.
const maxStatuses = 1 << 16

// Statuses returns the statuses that were noted, of the lowest blocks first.
func (c *Chain) Statuses() (all []ledger.SlotStatus) {
	for n := range c.notes {
		if n.status != orphaned {
			all = append(all, ledger.SlotStatus{Slot: n.block.Slot, Blockhash: ledger.Some(n.block.Hash), Status: n.status})
		}
	}
	slices.SortFunc(all, func(a, b ledger.SlotStatus) int {
		return cmp.Or(cmp.Compare(a.Slot, b.Slot), bytes.Compare(a.Blockhash.Value[:], b.Blockhash.Value[:]), cmp.Compare(a.Status, b.Status))
	})
	return all[:min(len(all), maxStatuses)]
}

// BlockFor returns the block that a status above the finalized slot is about: one in the tree, else one that waits, else
// nil. A status without a hash never means a block that was given up, because another may come at its slot.
func (c *Chain) BlockFor(e *ledger.SlotStatus) *Node {
	if n := c.find(e.Slot, e.Blockhash); n != nil && (e.Blockhash.Known || !n.IsGivenUp()) {
		return n
	}
	return c.waitingAt(e.Slot, e.Blockhash)
}

// IsOrphan reports whether a status is about a block that was dropped with an abandoned branch.
func (c *Chain) IsOrphan(e *ledger.SlotStatus) bool {
	return c.notes[note{ledger.BlockID{Slot: e.Slot, Hash: e.Blockhash.Value}, orphaned}]
}

// newNode returns a node that is not in the tree.
func (c *Chain) newNode(b *ledger.Block) *Node {
	return &Node{Block: b, Claimed: b.Status, Dead: c.notes[note{idOf(b), ledger.StatusDead}]}
}

// Attach makes b a child of parent, beside the chain.
func (c *Chain) Attach(b *ledger.Block, parent *Node) *Node { return c.Link(c.newNode(b), parent) }

// Link makes a block that waited a child of parent, beside the chain, and returns it.
func (c *Chain) Link(n, parent *Node) *Node {
	c.nodes[n.Slot()] = append(c.nodes[n.Slot()], n)
	delete(c.notes, note{n.ID(), orphaned})
	if n.Parent = parent; parent != nil {
		parent.children = append(parent.children, n)
		c.UnfinalizedBytes += n.Block.UnfinalizedBytes()
	}
	return n
}

// Begin makes b the root of the tree: it is finalized, and the caller appends it.
func (c *Chain) Begin(b *ledger.Block) *Node {
	c.Finalized = c.Attach(b, nil)
	c.Confirmed = c.Finalized
	return c.Finalized
}
