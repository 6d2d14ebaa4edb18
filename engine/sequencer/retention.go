package sequencer

import (
	"slices"

	"ledgerd/engine/ledger"
	"ledgerd/shard/txstore"
	"ledgerd/snapshot"
)

// Retention says how much of the past is held in memory, whichever is less.
type Retention struct {
	Slots ledger.Slot // blocks and transactions of so many slots; also how long tombstones stay
	Bytes int         // estimated bytes of blocks and transactions
}

// spentShare is the part of the retained blocks, 1 in so many, that pruned ones may keep in memory besides.
const spentShare = 32

// Forgets reports whether the tombstone of an account that was closed at a slot has expired at a head. A fold removes it
// some time later.
func (r Retention) Forgets(h *ledger.Head, closed ledger.Slot) bool {
	tip := h.Tip(ledger.Processed).Slot
	return tip > r.Slots && closed < min(tip-r.Slots, h.Tip(ledger.Finalized).Slot)
}

// retained are the blocks of the chain that are not pruned. Published heads share the array: what lies
// in it is never written again.
type retained struct {
	blocks []*txstore.Block // oldest first
	spent  int              // blocks before them that are pruned and still in the array
	bytes  int
	floor  ledger.Slot             // blocks below it are pruned
	before ledger.Opt[ledger.Slot] // the newest block that was pruned
	undone []*txstore.Block        // blocks that left the chain since the last prune
}

// Blocks returns the blocks that a head of a sequencer holds, oldest first; nil where it holds none. The caller must not
// change the result.
func Blocks(h *ledger.Head) []*txstore.Block {
	blocks, _ := h.Chain.([]*txstore.Block)
	return blocks
}

// pop drops the newest n blocks: they left the chain.
func (h *retained) pop(n int) {
	left := len(h.blocks) - n
	for _, b := range h.blocks[left:] {
		h.bytes -= b.SizeBytes()
	}
	h.undone = append(h.undone, h.blocks[left:]...)
	h.blocks, h.spent = slices.Clone(h.blocks[:left]), 0 // later blocks must not overwrite those that left
}

// prune drops the blocks that a retention gives up at a head and returns them, with the blocks that left the chain. The
// newest finalized block and everything above it stay.
func (h *retained) prune(r Retention, head *ledger.Head) (pruned []*txstore.Block) {
	finalized, next := head.Tip(ledger.Finalized).Slot, head.Tip(ledger.Processed).Slot+1
	h.floor = max(h.floor, min(next-min(next, r.Slots), finalized))
	n := 0
	for ; n < len(h.blocks) && h.blocks[n].Block.Slot < finalized; n++ {
		b := h.blocks[n]
		if b.Block.Slot >= h.floor && h.bytes <= r.Bytes {
			break
		}
		h.floor = max(h.floor, b.Block.Slot+1)
		h.bytes -= b.SizeBytes()
		h.before = ledger.Some(b.Block.Slot)
	}
	pruned, h.undone = append(h.undone, h.blocks[:n]...), nil
	h.blocks, h.spent = h.blocks[n:], h.spent+n
	if h.spent > len(h.blocks)/spentShare {
		h.blocks, h.spent = slices.Clone(h.blocks), 0 // frees the pruned blocks, which the array keeps in memory
	}
	return pruned
}

// upTo returns the blocks held up to a slot, oldest first, as snapshots keep them.
func (h *retained) upTo(last ledger.Slot) []snapshot.HeldBlock {
	var out []snapshot.HeldBlock
	previous := h.before
	for _, b := range h.blocks {
		if b.Block.Slot > last {
			break
		}
		out = append(out, snapshot.HeldBlock{Block: b.Block, Whole: b.Whole, Previous: previous.Value, HasPrevious: previous.Known})
		previous = ledger.Some(b.Block.Slot)
	}
	return out
}
