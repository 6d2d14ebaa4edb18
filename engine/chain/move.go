package chain

import (
	"bytes"
	"fmt"
	"ledgerd/engine/ledger"
	"slices"
)

// MaxRollbackBlocks is the deepest rollback that is carried out. A deeper one means that the source follows another
// ledger, which a person has to look into.
const MaxRollbackBlocks = 32

// RefusedError says that a rollback was refused: ingest stops, reads go on.
type RefusedError struct{ why string }

func (e *RefusedError) Error() string { return e.why }

// Refused returns a RefusedError with a formatted reason.
func Refused(format string, args ...any) error {
	return &RefusedError{fmt.Sprintf(format, args...)}
}

// Wins reports whether n becomes the tip because of its slot alone: its slot is above that of the tip, and it descends
// from the newest confirmed block.
func (c *Chain) Wins(n *Node) bool {
	fork := n
	for !fork.OnChain() {
		fork = fork.Parent
	}
	return n.Slot() > c.Tip.Slot() && fork.Slot() >= c.Confirmed.Slot()
}

// TipWithout returns the block that becomes the tip when n, which is on the chain, is dead: the highest descendant of
// the newest confirmed block below n that is above the parent of n, or else that parent.
func (c *Chain) TipWithout(n *Node) *Node {
	confirmed := c.Confirmed
	if confirmed.Slot() >= n.Slot() {
		confirmed = n.Parent
	}
	if best := c.Best(confirmed); best.Slot() > n.Parent.Slot() {
		return best
	}
	return n.Parent
}

// MayFollowGap reports whether b, whose parent was not shown, may be appended to the tip with a gap between them: its
// parent must not be on another branch, and b must not be dead.
func (c *Chain) MayFollowGap(b *ledger.Block) bool {
	return b.Slot > c.Tip.Slot() && b.ParentSlot >= c.Tip.Slot() && !c.isDead(b) &&
		(b.ParentSlot > c.Tip.Slot() || !b.PreviousBlockhash.Known || b.PreviousBlockhash.Value == c.Tip.Block.Blockhash)
}

// Best returns the highest block among n and its descendants that are not dead. Of two at one slot it is the one of
// the lower hash, so that the order of arrival does not matter.
func (c *Chain) Best(n *Node) *Node {
	best := n
	for _, child := range n.children {
		if child.Dead {
			continue
		}
		b := c.Best(child)
		if b.Slot() > best.Slot() || b.Slot() == best.Slot() && bytes.Compare(b.Block.Blockhash[:], best.Block.Blockhash[:]) < 0 {
			best = b
		}
	}
	return best
}

// Move is a change of the chain: the blocks of Undo are undone, newest first, down to Ancestor, and then those of Add
// are appended.
type Move struct {
	Undo     []*Node
	Ancestor *Node
	Add      []*Node
}

// MoveTo returns the move that makes target the tip, or a RefusedError.
func (c *Chain) MoveTo(target *Node) (Move, error) {
	var m Move
	n := target
	for ; !n.OnChain(); n = n.Parent {
		m.Add = append(m.Add, n)
	}
	slices.Reverse(m.Add)
	m.Ancestor = n
	for u := c.Tip; u != m.Ancestor; u = u.Parent {
		if u.Parent == nil {
			return m, Refused("slot %d is on a branch that leaves the chain below the finalized slot %d", target.Slot(), c.Finalized.Slot())
		}
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

// Appended puts n on the chain, as the tip. v is the version of its record; its Seq and StateHash are not known yet.
func (c *Chain) Appended(n *Node, v ledger.Version) {
	n.Version, n.Dead = v, false
	if c.recovered == unbounded {
		c.recovered = c.TipSlot()
	}
	c.Tip = n
}
