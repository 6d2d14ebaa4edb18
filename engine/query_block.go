package engine

import (
	"slices"
	"sort"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/sequencer"
	"ledgerd/shard/txstore"
)

// LatestBlock returns the newest block of the query's commitment.
func (e *Engine) LatestBlock(q ledger.Query) (ledger.BlockAnswer, ledger.View, error) {
	return answer(e, q, func(v ledger.View, _ time.Time) (ledger.BlockAnswer, error) {
		if !v.Head.HasBlock {
			return ledger.BlockAnswer{}, &ledger.NotFoundError{Absence: ledger.NoBlockYet}
		}
		return blockAt(v, v.Tip().Slot, q.Parts)
	})
}

// Block returns the block at slot. For a missing one it returns a *ledger.NotFoundError that distinguishes
// skipped, not yet produced, pruned and not indexed.
func (e *Engine) Block(q ledger.Query, slot ledger.Slot) (ledger.BlockAnswer, ledger.View, error) {
	return answer(e, q, func(v ledger.View, _ time.Time) (ledger.BlockAnswer, error) {
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
	i := firstFrom(blocks, slot)
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
	blocks = blocks[:firstFrom(blocks, v.Tip().Slot+1)]
	return blocks[firstFrom(blocks, v.Head.Floor):]
}

// firstFrom returns the index of the first block at or above slot.
func firstFrom(blocks []*txstore.Block, slot ledger.Slot) int {
	return sort.Search(len(blocks), func(i int) bool { return blocks[i].Block.Slot >= slot })
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

// recentPage is a page of transactions, and whether the interval has more.
type recentPage struct {
	transactions []*ledger.Transaction
	more         bool
}

// Recent returns the newest transactions strictly between two others, newest first, and
// whether there are more. If a bound is not held it returns a *ledger.NotFoundError.
func (e *Engine) Recent(q ledger.Query, r ledger.RecentRange) ([]*ledger.Transaction, bool, ledger.View, error) {
	page, v, err := answer(e, q, func(v ledger.View, _ time.Time) (recentPage, error) {
		return e.recent(v, r)
	})
	return page.transactions, page.more, v, err
}

func (e *Engine) recent(v ledger.View, r ledger.RecentRange) (page recentPage, err error) {
	before, after, err := e.bounds(v, r)
	if err != nil || !v.Head.HasBlock {
		return page, err
	}
	blocks := blocksOf(v)
	if before != nil {
		blocks = blocks[:firstFrom(blocks, before.Slot+1)]
	}
	if after != nil {
		blocks = blocks[firstFrom(blocks, after.Slot):]
	}
	for _, b := range slices.Backward(blocks) {
		slot, first, last := b.Block.Slot, 0, b.Len()
		if before != nil && slot == before.Slot {
			last = int(before.Index)
		}
		if after != nil && slot == after.Slot {
			first = int(after.Index) + 1
		}
		some := b.Transactions(max(first, last-(r.Limit-len(page.transactions))), last)
		for i := len(some) - 1; i >= 0; i-- {
			page.transactions = append(page.transactions, &some[i])
		}
		if page.more = len(some) < last-first; page.more {
			return page, nil
		}
	}
	return page, nil
}

// bounds returns the transactions that bound a range, nil for an open end.
func (e *Engine) bounds(v ledger.View, r ledger.RecentRange) (before, after *ledger.Transaction, err error) {
	if r.Before.Known {
		if before, err = e.transaction(v, r.Before.Value); err != nil {
			return nil, nil, err
		}
	}
	if r.After.Known {
		if after, err = e.transaction(v, r.After.Value); err != nil {
			return nil, nil, err
		}
	}
	return before, after, nil
}
