package chain

import (
	"encoding/binary"
	"runtime/debug"
	"testing"

	"ledgerd/engine/ledger"
)

// at returns an empty block at a slot on the block of the slot before.
func at(slot ledger.Slot) *ledger.Block {
	hash := func(s ledger.Slot) (h ledger.Hash) {
		binary.BigEndian.PutUint64(h[:], uint64(s))
		return h
	}
	return &ledger.Block{Slot: slot, ParentSlot: slot - 1, Blockhash: hash(slot), PreviousBlockhash: ledger.Some(hash(slot - 1))}
}

// So many blocks may be unfinalized that a call for each of them would not fit on a stack.
func TestDepthOfABranchTakesNoStack(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(256 << 10)) // exceeding it ends the process
	const first, deep = 1, 100_000
	fill := func(c *Chain) (root, top *Node) {
		root = c.Begin(at(first))
		c.Appended(root, 1)
		top = root
		for slot := ledger.Slot(first + 1); slot <= first+deep; slot++ {
			top = c.Attach(at(slot), top)
		}
		return root, top
	}
	t.Run("the highest block", func(t *testing.T) {
		if root, top := fill(New()); root.Best() != top {
			t.Errorf("the best block is at slot %d, want %d", root.Best().Slot(), top.Slot())
		}
	})
	t.Run("a confirmed block confirms its ancestors", func(t *testing.T) {
		c := New()
		_, top := fill(c)
		c.NoteStatus(top.ID(), ledger.StatusConfirmed)
		if c.NoteStatus(top.Parent.ID(), ledger.StatusConfirmed) || c.NoteStatus(idOf(at(first+1)), ledger.StatusConfirmed) {
			t.Error("an ancestor is not noted as confirmed")
		}
	})
	t.Run("a branch beside the finalized block is forgotten", func(t *testing.T) {
		c := New()
		root, top := fill(c)
		other := at(first + 1)
		other.Blockhash[31] = 1
		n := c.Attach(other, root)
		c.Appended(n, 2)
		c.Finalize(n)
		if _, placement, err := c.Place(top.Block); err != nil || placement != Orphaned || c.UnfinalizedBytes != 0 {
			t.Errorf("the top of the branch comes again: placement %d, %v, and %d bytes are unfinalized", placement, err, c.UnfinalizedBytes)
		}
	})
	t.Run("waiting blocks on an orphan are orphans", func(t *testing.T) {
		c := New()
		c.Appended(c.Begin(at(first)), 1)
		const waiting = 2_000 // the waiting blocks are sorted with each that comes
		for slot := ledger.Slot(first + waiting); slot > first+2; slot-- {
			if _, placement, err := c.Place(at(slot)); err != nil || placement != Waits {
				t.Fatalf("block %d: placement %d, %v", slot, placement, err)
			}
		}
		c.Abandon(idOf(at(first + 2)))
		if len(c.Waiting) != 0 {
			t.Errorf("%d blocks still wait", len(c.Waiting))
		}
	})
}
