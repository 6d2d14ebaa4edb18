package sequencer

import (
	"slices"

	"ledgerd/engine/ledger"
	"ledgerd/shard/txstore"
	"ledgerd/snapshot"
)

// Retention bounds how much of the past is held in memory. The lower of both bounds counts.
type Retention struct {
	Slots ledger.Slot // blocks and transactions of so many slots; also how long tombstones stay
	Bytes int         // estimated bytes of blocks and transactions
	// Kept returns the slot below which finalized blocks are on disk. Blocks that are not stay longer than Slots says, but not
	// longer than Bytes allows. If Kept is nil, no block stays longer.
	Kept func() ledger.Slot
}

// spentShare bounds the pruned blocks that the array keeps in memory to 1 in so many of the retained blocks.
const spentShare = 32

// horizon returns the slot below which closings have expired once a slot is finalized.
func (r Retention) horizon(finalized ledger.Slot) ledger.Slot {
	return finalized - min(finalized, r.Slots)
}

// retained are the blocks of the chain that are not pruned. Published heads share the array: what lies
// in it is never written again.
type retained struct {
	blocks txstore.Chain
	spent  int // blocks before them that are pruned and still in the array
	bytes  int
	floor  ledger.Slot             // blocks below it are pruned
	before ledger.Opt[ledger.Slot] // the newest block that was pruned
	undone []*txstore.Block        // blocks that left the chain since the last prune
	gaps   []ledger.Slot           // of the blocks in front of which some are missing, shared with heads as blocks are
}

// add adds a block to the chain.
func (r *retained) add(b *txstore.Block) {
	before, lost := r.before, r.before.Known && r.before.Value >= r.floor // what a start found lost is missing as well
	if n := len(r.blocks); n > 0 {
		before, lost = ledger.Some(r.blocks[n-1].Block.Slot), false
	}
	if lost || before.Known && b.Block.ParentSlot > before.Value {
		r.gaps = append(slices.Clip(r.gaps), b.Block.Slot)
	}
	r.blocks = append(r.blocks, b)
	r.bytes += b.SizeBytes()
}

// Blocks returns the blocks that a head of a sequencer holds; nil where it holds none.
func Blocks(h *ledger.Head) txstore.Chain {
	blocks, _ := h.Chain.(txstore.Chain)
	return blocks
}

// pop drops the newest n blocks: they left the chain.
func (r *retained) pop(n int) {
	left := len(r.blocks) - n
	for _, b := range r.blocks[left:] {
		r.bytes -= b.SizeBytes()
	}
	r.undone = append(r.undone, r.blocks[left:]...)
	for g := len(r.gaps) - 1; g >= 0 && r.gaps[g] >= r.blocks[left].Block.Slot; g-- {
		r.gaps = r.gaps[:g]
	}
	r.blocks, r.spent = slices.Clone(r.blocks[:left]), 0 // later blocks must not overwrite those that left
}

// prune drops the blocks that exceed a retention at a head and returns them, with the blocks that left the chain. The
// newest finalized block and everything above it stay.
func (r *retained) prune(limit Retention, head *ledger.Head) (pruned []*txstore.Block) {
	finalized, next := head.Tip(ledger.Finalized).Slot, head.Tip(ledger.Processed).Slot+1
	floor := min(next-min(next, limit.Slots), finalized)
	if limit.Kept != nil {
		floor = min(floor, limit.Kept())
	}
	r.floor = max(r.floor, floor)
	n := 0
	for ; n < len(r.blocks) && r.blocks[n].Block.Slot < finalized; n++ {
		b := r.blocks[n]
		if b.Block.Slot >= r.floor && r.bytes <= limit.Bytes {
			break
		}
		r.floor = max(r.floor, b.Block.Slot+1)
		r.bytes -= b.SizeBytes()
		r.before = ledger.Some(b.Block.Slot)
	}
	for len(r.gaps) > 0 && r.gaps[0] < r.floor {
		r.gaps = r.gaps[1:]
	}
	pruned, r.undone = append(r.undone, r.blocks[:n]...), nil
	r.blocks, r.spent = r.blocks[n:], r.spent+n
	if r.spent > len(r.blocks)/spentShare {
		r.blocks, r.spent = slices.Clone(r.blocks), 0 // frees the pruned blocks, which the array keeps in memory
	}
	return pruned
}

// upTo returns the blocks held up to a slot, oldest first, as snapshots keep them.
func (r *retained) upTo(last ledger.Slot) []snapshot.HeldBlock {
	return Held(r.blocks[:r.blocks.FirstFrom(last+1)], r.before)
}

// Held returns blocks of a chain, oldest first, as they are written to disk; previous is the slot of the block before the first of them.
func Held(blocks txstore.Chain, previous ledger.Opt[ledger.Slot]) (out []snapshot.HeldBlock) {
	for _, b := range blocks {
		out = append(out, snapshot.HeldBlock{Block: b.Block, Whole: b.Whole, Previous: previous})
		previous = ledger.Some(b.Block.Slot)
	}
	return out
}
