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

// So many blocks may be unfinalized, or wait, that a call for each of them would not fit on a stack.
func TestDepthOfABranchTakesNoStack(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(256 << 10)) // exceeding it ends the process
	const first, deep, waiting = 1, 100_000, 2_000        // the waiting blocks are sorted with each that comes
	c := New()
	root := c.Begin(at(first))
	c.Appended(root, 1)
	top := root
	for slot := ledger.Slot(first + 1); slot <= first+deep; slot++ {
		top = c.Attach(at(slot), top)
	}
	if best := root.Best(); best != top {
		t.Errorf("the best block is at slot %d, want %d", best.Slot(), top.Slot())
	}
	c.NoteStatus(top.ID(), ledger.StatusConfirmed)
	if c.NoteStatus(top.Parent.ID(), ledger.StatusConfirmed) || c.NoteStatus(idOf(at(first+1)), ledger.StatusConfirmed) {
		t.Error("an ancestor of a confirmed block is not noted as confirmed")
	}
	other := at(first + 1)
	other.Blockhash[31] = 1
	n := c.Attach(other, root)
	c.Appended(n, 2)
	c.Finalize(n)
	if _, placement, err := c.Place(top.Block); err != nil || placement != Orphaned || c.UnfinalizedBytes != 0 {
		t.Errorf("the top of an abandoned branch comes again: placement %d, %v, and %d bytes are unfinalized", placement, err, c.UnfinalizedBytes)
	}
	c = New() // of a chain with so many orphans each block that comes is compared with all of them
	c.Appended(c.Begin(at(first)), 1)
	const lost = first + 1
	for slot := ledger.Slot(lost + waiting); slot > lost; slot-- {
		if _, placement, err := c.Place(at(slot)); err != nil || placement != Waits {
			t.Fatalf("block %d: placement %d, %v", slot, placement, err)
		}
	}
	if c.Abandon(idOf(at(lost))); len(c.Waiting) != 0 {
		t.Errorf("%d blocks still wait for an orphan", len(c.Waiting))
	}
}
