package chain

import (
	"slices"

	"ledgerd/engine/ledger"
)

// Blocks whose parent is unknown wait up to these bounds before the gap rule applies.
const (
	maxWaitingSlots = 64
	MaxWaitingBytes = 64 << 20
)

// WaitingBlock is a block whose parent has not arrived, with the highest status that the source gave it meanwhile.
type WaitingBlock struct {
	Block  *ledger.Block
	Status ledger.Status // 0 for none
}

// Waiting holds blocks whose parent is unknown, in slot order.
type Waiting struct {
	blocks []WaitingBlock
	bytes  int
}

// add keeps b until its parent comes; false if it waits already.
func (w *Waiting) add(b *ledger.Block) bool {
	for _, o := range w.blocks {
		if o.Block.Slot == b.Slot && o.Block.Blockhash == b.Blockhash {
			return false
		}
	}
	i, _ := slices.BinarySearchFunc(w.blocks, b.Slot, func(o WaitingBlock, s ledger.Slot) int {
		if o.Block.Slot <= s {
			return -1
		}
		return 1
	})
	w.blocks = slices.Insert(w.blocks, i, WaitingBlock{Block: b})
	w.bytes += b.SizeBytes()
	return true
}

// Len returns how many blocks wait.
func (w *Waiting) Len() int { return len(w.blocks) }

// Overflows reports whether blocks waited longer than they may.
func (w *Waiting) Overflows() bool {
	n := len(w.blocks)
	return w.bytes > MaxWaitingBytes ||
		n > 0 && w.blocks[n-1].Block.Slot-w.blocks[0].Block.Slot >= maxWaitingSlots
}

// ChildOf takes out the lowest block that builds on the one named.
func (w *Waiting) ChildOf(parent BlockID) (WaitingBlock, bool) {
	for i, o := range w.blocks {
		previous := o.Block.PreviousBlockhash
		if o.Block.ParentSlot == parent.Slot && (!previous.Known || previous.Value == parent.Hash) {
			return w.take(i), true
		}
	}
	return WaitingBlock{}, false
}

// Lowest takes out the block of the lowest slot.
func (w *Waiting) Lowest() (WaitingBlock, bool) {
	if len(w.blocks) == 0 {
		return WaitingBlock{}, false
	}
	return w.take(0), true
}

// BlockFor returns the waiting block that a status is about, nil if there is none.
func (w *Waiting) BlockFor(s *ledger.SlotStatus) *WaitingBlock {
	i := slices.IndexFunc(w.blocks, func(o WaitingBlock) bool {
		return o.Block.Slot == s.Slot && (!s.Blockhash.Known || s.Blockhash.Value == o.Block.Blockhash)
	})
	if i < 0 {
		return nil
	}
	return &w.blocks[i]
}

// dropUpTo forgets blocks that finality has passed.
func (w *Waiting) dropUpTo(slot ledger.Slot) {
	for len(w.blocks) > 0 && w.blocks[0].Block.Slot <= slot {
		w.take(0)
	}
}

func (w *Waiting) take(i int) WaitingBlock {
	o := w.blocks[i]
	w.blocks = slices.Delete(w.blocks, i, i+1)
	w.bytes -= o.Block.SizeBytes()
	return o
}
