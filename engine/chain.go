package engine

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"ledgerd/engine/ledger"
)

// maxRollbackBlocks is the deepest rollback that is carried out. A deeper one means that
// the source follows another ledger; a person has to look.
const maxRollbackBlocks = 32

// blockID names a block; two blocks may share a slot.
type blockID struct {
	slot ledger.Slot
	hash ledger.Hash
}

// node is a block whose parent is known: on the chain or, kept whole and unseen, beside it.
type node struct {
	block    *ledger.Block
	parent   *node // nil for the newest finalized block
	children []*node

	version   ledger.Version   // of its record on the present chain; 0 beside it
	again     ledger.Version   // of the rollback that made it the newest confirmed block once more, with base state learned meanwhile
	againSeq  ledger.Seq       // the newest update up to that
	seq       ledger.Seq       // the newest update up to its record, once the shards are done with that
	stateHash ledger.StateHash // after its record, likewise

	finalizedBy ledger.Version // the status record that made it final

	// dead: its source gave the block up. It stays beside the chain, with all that builds on it, until one of
	// them is said to be confirmed.
	dead bool

	// base: no block is held, the node is the base state of an import, which stands for the block
	// at its slot.
	base bool
}

func (n *node) slot() ledger.Slot { return n.block.Slot }
func (n *node) id() blockID       { return blockID{n.block.Slot, n.block.Blockhash} }
func (n *node) onChain() bool     { return n.version != 0 }

// chain is the tree of blocks from the newest finalized one on, and which branch of it
// is the chain. It decides; the sequencer carries out and reports back with undone and appended.
type chain struct {
	finalized *node // nil before the first block
	confirmed *node
	tip       *node

	nodes   map[blockID]*node
	slots   map[ledger.Slot][]*node // in arrival order
	orphans map[blockID]struct{}    // abandoned, with a slot above finalized; none is in nodes
	said    map[saying]struct{}     // of blocks above the finalized slot; it means nothing when it is said again
	waiting waiting

	unfinalizedBytes int

	// Up to the slot recovered orphans may come again that only the process before knew. It has no bound until a
	// block is appended that was not recovered, and is then the slot of the tip that this process began with.
	recovered ledger.Slot
}

// saying is a status that decided something about a block. The log tells all of them again.
type saying struct {
	of   blockID
	what ledger.Status
}

// unbounded is no slot's bound.
const unbounded = ledger.Slot(math.MaxUint64)

func newChain() *chain {
	return &chain{
		nodes:   make(map[blockID]*node),
		slots:   make(map[ledger.Slot][]*node),
		orphans: make(map[blockID]struct{}),
		said:    make(map[saying]struct{}),
	}
}

// tipSlot returns the slot of the tip, 0 before the first block.
func (c *chain) tipSlot() ledger.Slot {
	if c.tip == nil {
		return 0
	}
	return c.tip.slot()
}

// placement says what became of a block that arrived.
type placement uint8

const (
	placed    placement = iota // its parent is known
	duplicate                  // the same block is here already
	orphaned                   // it belongs to an abandoned branch
	waits                      // its parent is not known yet
)

// refusedError says that a rollback was refused: ingest stops, reads go on.
type refusedError struct{ why string }

func (e *refusedError) Error() string { return e.why }

func refused(format string, args ...any) error {
	return &refusedError{fmt.Sprintf(format, args...)}
}

// place finds the block's place. Slots at or below the finalized one are not for it.
func (c *chain) place(b *ledger.Block) (*node, placement, error) {
	id := blockID{b.Slot, b.Blockhash}
	if n := c.nodes[id]; n != nil {
		return n, duplicate, nil
	}
	parent := c.parentOf(b)
	if _, gone := c.orphans[id]; gone && parent == nil {
		return nil, orphaned, nil
	}
	if b.ParentSlot >= b.Slot {
		return nil, 0, fmt.Errorf("block %d names slot %d as its parent", b.Slot, b.ParentSlot)
	}
	if err := c.contradictsBase(b); err != nil {
		return nil, 0, err
	}
	below := b.ParentSlot < c.finalized.slot()
	switch beside := parent == nil && b.ParentSlot == c.finalized.slot() && !c.finalized.base; {
	case (below || beside) && b.Slot <= c.recovered && b.Status < ledger.Confirmed:
		c.abandon(id)
		return nil, orphaned, nil
	case below:
		return nil, 0, fmt.Errorf("block %d builds on slot %d, below the finalized slot %d", b.Slot, b.ParentSlot, c.finalized.slot())
	}
	if parent != nil {
		return c.attach(b, parent), placed, nil
	}
	if c.buildsOnOrphan(b) {
		c.abandon(id)
		return nil, orphaned, nil
	}
	if !c.waiting.add(b) {
		return nil, duplicate, nil
	}
	return nil, waits, nil
}

// contradictsBase returns an error for a block that says it builds on the slot of base state and means
// another block there.
func (c *chain) contradictsBase(b *ledger.Block) error {
	f := c.finalized
	if !f.base || b.Status < ledger.Confirmed || b.ParentSlot != f.slot() ||
		!b.PreviousBlockhash.Known || b.PreviousBlockhash.Value == f.block.Blockhash {
		return nil
	}
	return fmt.Errorf("block %d builds on another block at slot %d than the one that was imported: the source shows another ledger", b.Slot, f.slot())
}

// parentOf returns the node that b builds on, nil if it is not here. Where the source does
// not tell the parent's hash, the chain's block at that slot is meant.
func (c *chain) parentOf(b *ledger.Block) *node {
	if b.PreviousBlockhash.Known {
		return c.nodes[blockID{b.ParentSlot, b.PreviousBlockhash.Value}]
	}
	return c.atSlot(b.ParentSlot)
}

// holds reports whether n is still in the tree.
func (c *chain) holds(n *node) bool { return c.nodes[n.id()] == n }

// atSlot returns the block at slot that is on the chain, else the one that came last and was not given
// up, else the one that came last.
func (c *chain) atSlot(slot ledger.Slot) *node {
	var found *node
	for _, n := range c.slots[slot] {
		if n.onChain() {
			return n
		}
		if found == nil || c.isGivenUp(found) || !c.isGivenUp(n) {
			found = n
		}
	}
	return found
}

// isGivenUp reports whether n, or what it builds on beside the chain, was called dead, and nothing
// that was said since says otherwise.
func (c *chain) isGivenUp(n *node) bool {
	for ; n != nil && !n.onChain(); n = n.parent {
		if n.dead {
			return true
		}
	}
	return false
}

// says notes a status of a block, and reports whether that is new: one that comes again decides nothing.
// What is confirmed, is so with all that it builds on.
func (c *chain) says(of blockID, what ledger.Status) bool {
	if _, again := c.said[saying{of, what}]; again {
		return false
	}
	c.said[saying{of, what}] = struct{}{}
	if n := c.nodes[of]; n != nil && n.parent != nil && what == ledger.StatusConfirmed {
		c.says(n.parent.id(), what)
	}
	return true
}

// isDead reports whether b was called dead.
func (c *chain) isDead(b *ledger.Block) bool {
	_, dead := c.said[saying{blockID{b.Slot, b.Blockhash}, ledger.StatusDead}]
	return dead
}

// wins reports whether n, which is not on the tip, becomes it for its slot alone: it has to descend from
// the newest confirmed block.
func (c *chain) wins(n *node) bool {
	fork := n
	for !fork.onChain() {
		fork = fork.parent
	}
	return n.slot() > c.tip.slot() && fork.slot() >= c.confirmed.slot()
}

// without returns the block that becomes the tip when n, which is on the chain, is dead: the highest that may be, or
// else the one below n.
func (c *chain) without(n *node) *node {
	sure := c.confirmed
	if sure.slot() >= n.slot() {
		sure = n.parent
	}
	if best := c.best(sure); best.slot() > n.parent.slot() {
		return best
	}
	return n.parent
}

// revive takes n and what it builds on for alive: what is confirmed, or has a confirmed child, is.
func (c *chain) revive(n *node) {
	for ; n != nil && !n.onChain(); n = n.parent {
		n.dead = false
	}
}

// meant returns the block whose parent is known that a status is about, nil if there is none. One that
// was given up is meant only by its hash: another may yet come at its slot.
func (c *chain) meant(e *ledger.SlotStatus) *node {
	if e.Blockhash.Known {
		return c.nodes[blockID{e.Slot, e.Blockhash.Value}]
	}
	if n := c.atSlot(e.Slot); !c.isGivenUp(n) {
		return n
	}
	return nil
}

// buildsOnOrphan reports whether the parent of b, which is not here, was given up.
func (c *chain) buildsOnOrphan(b *ledger.Block) bool {
	if !b.PreviousBlockhash.Known {
		for id := range c.orphans {
			if id.slot == b.ParentSlot {
				return true
			}
		}
		return false
	}
	_, gone := c.orphans[blockID{b.ParentSlot, b.PreviousBlockhash.Value}]
	return gone
}

// attach makes b a child of parent, beside the chain until it is moved there.
func (c *chain) attach(b *ledger.Block, parent *node) *node {
	n := &node{block: b, parent: parent, dead: c.isDead(b)}
	c.nodes[n.id()] = n
	c.slots[b.Slot] = append(c.slots[b.Slot], n)
	delete(c.orphans, n.id())
	if parent != nil {
		parent.children = append(parent.children, n)
		c.unfinalizedBytes += b.SizeBytes()
	}
	return n
}

// begin makes b the root: the first block ever, trusted and final.
func (c *chain) begin(b *ledger.Block) *node {
	c.finalized = c.attach(b, nil)
	c.confirmed = c.finalized
	return c.finalized
}

// below returns the block so many blocks below the tip, nil where finality has passed it.
func (c *chain) below(blocks int) *node {
	n := c.tip
	for ; n != nil && blocks > 0; blocks-- {
		n = n.parent
	}
	return n
}

// mayFollow reports whether b, whose parent was not shown, may stand on the tip with a gap
// between: its parent must not lie on another branch, and nobody called it dead.
func (c *chain) mayFollow(b *ledger.Block) bool {
	return b.Slot > c.tip.slot() && b.ParentSlot >= c.tip.slot() && !c.isDead(b) &&
		(b.ParentSlot > c.tip.slot() || !b.PreviousBlockhash.Known || b.PreviousBlockhash.Value == c.tip.block.Blockhash)
}

// move is a change of the chain: blocks to undo, newest first, and blocks to append after.
type move struct {
	undo     []*node
	ancestor *node
	add      []*node
}

// moveTo returns the move that makes target the tip.
func (c *chain) moveTo(target *node) (move, error) {
	var m move
	n := target
	for ; !n.onChain(); n = n.parent {
		m.add = append(m.add, n)
	}
	slices.Reverse(m.add)
	m.ancestor = n
	for u := c.tip; u != m.ancestor; u = u.parent {
		if u.parent == nil {
			return m, refused("slot %d is on a branch that leaves the chain below the finalized slot %d", target.slot(), c.finalized.slot())
		}
		m.undo = append(m.undo, u)
	}
	if len(m.undo) > maxRollbackBlocks {
		return m, refused("slot %d would undo %d blocks, more than %d", target.slot(), len(m.undo), maxRollbackBlocks)
	}
	return m, nil
}

// undone takes the move's undone blocks off the chain, by the record of a version.
func (c *chain) undone(m move, v ledger.Version) {
	for _, n := range m.undo {
		n.version, n.seq, n.stateHash = 0, 0, ledger.StateHash{}
	}
	if c.tip = m.ancestor; c.confirmed.slot() > c.tip.slot() {
		c.confirmed, c.tip.again = c.tip, v
	}
}

// appended puts n on the chain, as the tip, by the record of a version. What else the record says
// of it is not known yet.
func (c *chain) appended(n *node, v ledger.Version) {
	n.version, n.dead = v, false
	if c.recovered == unbounded {
		c.recovered = c.tipSlot()
	}
	c.tip = n
}

// best returns the highest block of n's branch: n or a descendant of it that was not called dead. Of two it is
// the one of the lower hash, whichever came first.
func (c *chain) best(n *node) *node {
	best := n
	for _, child := range n.children {
		if child.dead {
			continue
		}
		b := c.best(child)
		if b.slot() > best.slot() || b.slot() == best.slot() && bytes.Compare(b.block.Blockhash[:], best.block.Blockhash[:]) < 0 {
			best = b
		}
	}
	return best
}

// finalize makes n, which is on the chain, the newest finalized block and forgets every
// branch that does not hold it.
func (c *chain) finalize(n *node) {
	keep := map[*node]bool{}
	for a := n; a != nil; a = a.parent {
		keep[a] = true
	}
	for a := n.parent; a != nil; a = a.parent {
		for _, child := range a.children {
			if !keep[child] {
				c.forget(child)
			}
		}
		c.remove(a)
	}
	if n.parent != nil {
		c.unfinalizedBytes -= n.block.SizeBytes()
	}
	for id := range c.orphans {
		if id.slot <= n.slot() {
			delete(c.orphans, id)
		}
	}
	for s := range c.said {
		if s.of.slot <= n.slot() {
			delete(c.said, s)
		}
	}
	n.parent = nil
	// The shards hold the block now; only its header is of use here.
	header := *n.block
	header.Transactions, header.Accounts, header.Mints = nil, nil, nil
	n.block = &header
	c.finalized = n
	if c.confirmed.slot() < n.slot() {
		c.confirmed = n
	}
	c.waiting.dropUpTo(n.slot())
}

// forget removes n and all that builds on it, and remembers them as orphans.
func (c *chain) forget(n *node) {
	for _, child := range n.children {
		c.forget(child)
	}
	c.abandon(n.id())
	c.remove(n)
}

// abandon remembers a block as an orphan, and all that wait for it.
func (c *chain) abandon(id blockID) {
	c.orphans[id] = struct{}{}
	for {
		child, ok := c.waiting.childOf(id)
		if !ok {
			return
		}
		c.abandon(blockID{child.block.Slot, child.block.Blockhash})
	}
}

// remove takes n out of the maps; links to it are the caller's.
func (c *chain) remove(n *node) {
	delete(c.nodes, n.id())
	if n.parent != nil {
		c.unfinalizedBytes -= n.block.SizeBytes()
	}
	at := slices.DeleteFunc(c.slots[n.slot()], func(o *node) bool { return o == n })
	if len(at) == 0 {
		delete(c.slots, n.slot())
		return
	}
	c.slots[n.slot()] = at
}
