package chain

import (
	"fmt"
	"slices"

	"ledgerd/engine/ledger"
)

// MaxRollbackBlocks is the deepest rollback that is carried out. A deeper one means that the source follows another
// ledger, and an operator has to decide.
const MaxRollbackBlocks = 32

// RefusedError says that a rollback was refused: ingest stops, reads go on.
type RefusedError struct{ error }

// ContradictionError says that the source contradicts itself or what is final. The event was dropped.
type ContradictionError struct{ error }

// Contradicts returns a ContradictionError with a formatted reason.
func Contradicts(format string, args ...any) error {
	return &ContradictionError{fmt.Errorf(format, args...)}
}

// Refused returns a RefusedError with a formatted reason.
func Refused(format string, args ...any) error {
	return &RefusedError{fmt.Errorf(format, args...)}
}

// Wins reports whether n becomes the tip because of its slot alone: its slot is above that of the tip, and it descends
// from the newest confirmed block. A child of the tip always wins.
func (c *Chain) Wins(n *Node) bool {
	m, _ := c.MoveTo(n) // a move that is too deep is refused when it is made
	return n.Slot() > c.Tip.Slot() && m.Ancestor.Slot() >= c.Confirmed.Slot()
}

// TipWithout returns the block that becomes the tip when n, which is on the chain, is dead: the highest descendant of
// the newest confirmed block below n that is above the parent of n, or else that parent.
func (c *Chain) TipWithout(n *Node) *Node {
	confirmed := c.Confirmed
	if confirmed.Slot() >= n.Slot() {
		confirmed = n.Parent
	}
	if best := confirmed.Best(); best.Slot() > n.Parent.Slot() {
		return best
	}
	return n.Parent
}

// MayFollowGap reports whether n, whose parent was not shown, may be appended to the tip with a gap between them: its
// parent must not be on another branch, and n must not be dead.
func (c *Chain) MayFollowGap(n *Node) bool {
	return n.Slot() > c.Tip.Slot() && !n.Dead && (n.Block.ParentSlot > c.Tip.Slot() || buildsOn(n.Block, c.Tip.ID()))
}

// Move is a change of the chain: the blocks of Undo are undone, newest first, down to Ancestor, and then those of Add
// are appended.
type Move struct {
	Undo     []*Node
	Ancestor *Node
	Add      []*Node
}

// MoveTo returns the move that makes target, a node of the tree, the tip. It returns a RefusedError where more than
// MaxRollbackBlocks blocks would be undone. No move undoes the finalized block, because every node of the tree descends
// from it.
func (c *Chain) MoveTo(target *Node) (Move, error) {
	m := Move{Ancestor: target}
	for ; !m.Ancestor.OnChain(); m.Ancestor = m.Ancestor.Parent {
		m.Add = append(m.Add, m.Ancestor)
	}
	slices.Reverse(m.Add)
	for u := c.Tip; u != m.Ancestor; u = u.Parent {
		m.Undo = append(m.Undo, u)
	}
	if len(m.Undo) > MaxRollbackBlocks {
		return m, Refused("slot %d would undo %d blocks, more than %d", target.Slot(), len(m.Undo), MaxRollbackBlocks)
	}
	return m, nil
}

// Undone takes the undone blocks of a move off the chain. v is the version of the rollback record.
func (c *Chain) Undone(m Move, v ledger.Version) {
	for _, n := range m.Undo {
		n.Version, n.Seq, n.StateHash = 0, 0, ledger.StateHash{}
	}
	if c.Tip = m.Ancestor; c.Confirmed.Slot() > c.Tip.Slot() {
		c.Confirmed, c.Tip.ConfirmedAgain = c.Tip, v
	}
}

// Appended makes n the tip of the chain; n is not dead any more. v is the version of its record; its Seq and StateHash are
// not known yet.
func (c *Chain) Appended(n *Node, v ledger.Version) {
	n.Version, n.Dead = v, false
	if c.recovered == unbounded {
		c.recovered = c.TipSlot()
	}
	c.Tip = n
}
