package reader

import (
	"slices"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/sequencer"
	"ledgerd/shard/txstore"
)

// LatestBlock returns the newest block of the query's commitment.
func (r *Reader) LatestBlock(q ledger.Query) (ledger.BlockAnswer, ledger.View, error) {
	return answer(r, q, func(v ledger.View, _ time.Time) (ledger.BlockAnswer, error) {
		if !v.Head.HasBlock {
			return ledger.BlockAnswer{}, &ledger.NotFoundError{Absence: ledger.NoBlockYet}
		}
		return blockAt(v, v.Tip().Slot, q.Parts)
	})
}

// Block returns the block at slot. For a missing one it returns a *ledger.NotFoundError that distinguishes
// skipped, not yet produced, pruned and not indexed.
func (r *Reader) Block(q ledger.Query, slot ledger.Slot) (ledger.BlockAnswer, ledger.View, error) {
	return answer(r, q, func(v ledger.View, _ time.Time) (ledger.BlockAnswer, error) {
		return blockAt(v, slot, q.Parts)
	})
}

func blockAt(v ledger.View, slot ledger.Slot, parts ledger.BlockParts) (ledger.BlockAnswer, error) {
	absent := func(why ledger.Absence) (ledger.BlockAnswer, error) {
		return ledger.BlockAnswer{}, &ledger.NotFoundError{Absence: why}
	}
	switch {
	case !v.Head.HasSlot() || slot > v.Tip().Slot:
		return absent(ledger.SlotNotYetProduced)
	case slot < v.Head.Root || !v.Head.HasBlock:
		return absent(ledger.SlotNotIndexed)
	case slot < v.Head.Floor:
		return absent(ledger.SlotPruned)
	}
	blocks := blocksOf(v)
	i := sequencer.FirstFrom(blocks, slot)
	switch {
	case i == len(blocks):
		return absent(ledger.SlotNotIndexed)
	case blocks[i].Block.Slot == slot:
		return ledger.BlockAnswer{Block: partsOf(blocks[i], parts), Commitment: v.Head.CommitmentOf(slot)}, nil
	case blocks[i].Block.ParentSlot < slot: // only the parent link of the next block proves that the slot has no block
		return absent(ledger.SlotSkipped)
	}
	return absent(ledger.SlotNotIndexed)
}

// blocksOf returns the held blocks up to the tip of a view, oldest first.
func blocksOf(v ledger.View) []*txstore.Block {
	blocks := sequencer.Blocks(v.Head)
	blocks = blocks[:sequencer.FirstFrom(blocks, v.Tip().Slot+1)]
	return blocks[sequencer.FirstFrom(blocks, v.Head.Floor):]
}

// partsOf returns a block with the requested parts of its transactions.
func partsOf(b *txstore.Block, parts ledger.BlockParts) *ledger.Block {
	switch parts {
	case ledger.NoTransactions:
		return b.Block
	case ledger.SignaturesOnly:
		block := *b.Block
		block.Transactions = b.Signatures()
		return &block
	default:
		return b.Whole()
	}
}

// page is a part of a list, and whether the list has more.
type page[T any] struct {
	items []T
	more  bool
}

// Recent returns the newest transactions strictly between two others, newest first, and
// whether there are more. If a bound is not held it returns a *ledger.NotFoundError.
func (r *Reader) Recent(q ledger.Query, between ledger.RecentRange) ([]*ledger.Transaction, bool, ledger.View, error) {
	p, v, err := answer(r, q, func(v ledger.View, _ time.Time) (page[*ledger.Transaction], error) {
		return r.recent(v, between)
	})
	return p.items, p.more, v, err
}

func (r *Reader) recent(v ledger.View, between ledger.RecentRange) (p page[*ledger.Transaction], err error) {
	var before, after *ledger.Transaction // nil: an open end
	if between.Before.Known {
		if before, err = r.transaction(v, between.Before.Value); err != nil {
			return p, err
		}
	}
	if between.After.Known {
		if after, err = r.transaction(v, between.After.Value); err != nil {
			return p, err
		}
	}
	if !v.Head.HasBlock {
		return p, nil
	}
	blocks := blocksOf(v)
	if before != nil {
		blocks = blocks[:sequencer.FirstFrom(blocks, before.Slot+1)]
	}
	if after != nil {
		blocks = blocks[sequencer.FirstFrom(blocks, after.Slot):]
	}
	for _, b := range slices.Backward(blocks) {
		slot, first, last := b.Block.Slot, 0, b.Len()
		if before != nil && slot == before.Slot {
			last = int(before.Index)
		}
		if after != nil && slot == after.Slot {
			first = int(after.Index) + 1
		}
		some := b.Transactions(max(first, last-(between.Limit-len(p.items))), last)
		for i := len(some) - 1; i >= 0; i-- {
			p.items = append(p.items, &some[i])
		}
		if p.more = len(some) < last-first; p.more {
			return p, nil
		}
	}
	return p, nil
}
