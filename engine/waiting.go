package engine

import (
	"slices"

	"ledgerd/engine/ledger"
)

// Blocks whose parent is unknown wait up to these bounds before the gap rule applies.
const (
	maxWaitingSlots = 64
	maxWaitingBytes = 64 << 20
)

// waitingBlock is a block whose parent has not arrived, with the highest status that was
// said of it meanwhile.
type waitingBlock struct {
	block  *ledger.Block
	status ledger.Status // 0 for none
}

// waiting holds blocks whose parent is unknown, in slot order.
type waiting struct {
	blocks []waitingBlock
	bytes  int
}

// add keeps b until its parent comes; false if it waits already.
func (w *waiting) add(b *ledger.Block) bool {
	for _, o := range w.blocks {
		if o.block.Slot == b.Slot && o.block.Blockhash == b.Blockhash {
			return false
		}
	}
	i, _ := slices.BinarySearchFunc(w.blocks, b.Slot, func(o waitingBlock, s ledger.Slot) int {
		if o.block.Slot <= s {
			return -1
		}
		return 1
	})
	w.blocks = slices.Insert(w.blocks, i, waitingBlock{block: b})
	w.bytes += b.SizeBytes()
	return true
}

// overflows reports whether blocks waited longer than they may.
func (w *waiting) overflows() bool {
	n := len(w.blocks)
	return w.bytes > maxWaitingBytes ||
		n > 0 && w.blocks[n-1].block.Slot-w.blocks[0].block.Slot >= maxWaitingSlots
}

// childOf takes out the lowest block that builds on the one named.
func (w *waiting) childOf(parent blockID) (waitingBlock, bool) {
	for i, o := range w.blocks {
		previous := o.block.PreviousBlockhash
		if o.block.ParentSlot == parent.slot && (!previous.Known || previous.Value == parent.hash) {
			return w.take(i), true
		}
	}
	return waitingBlock{}, false
}

// lowest takes out the block of the lowest slot.
func (w *waiting) lowest() (waitingBlock, bool) {
	if len(w.blocks) == 0 {
		return waitingBlock{}, false
	}
	return w.take(0), true
}

// meant returns the place of the waiting block that a status is about, -1 if there is none.
func (w *waiting) meant(s *ledger.SlotStatus) int {
	return slices.IndexFunc(w.blocks, func(o waitingBlock) bool {
		return o.block.Slot == s.Slot && (!s.Blockhash.Known || s.Blockhash.Value == o.block.Blockhash)
	})
}

// dropUpTo forgets blocks that finality has passed.
func (w *waiting) dropUpTo(slot ledger.Slot) {
	for len(w.blocks) > 0 && w.blocks[0].block.Slot <= slot {
		w.take(0)
	}
}

func (w *waiting) take(i int) waitingBlock {
	o := w.blocks[i]
	w.blocks = slices.Delete(w.blocks, i, i+1)
	w.bytes -= o.block.SizeBytes()
	return o
}
