package engine

import (
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/shard"
)

// LatestBlock returns the newest block of the asked commitment.
func (e *Engine) LatestBlock(q ledger.Query) (ledger.BlockAnswer, ledger.View, error) {
	return answer(e, q, func(v ledger.View, deadline time.Time) (ledger.BlockAnswer, error) {
		if !v.Head.HasBlock {
			return ledger.BlockAnswer{}, &ledger.NotFoundError{Absence: ledger.NoBlockYet}
		}
		return e.block(v, v.Tip().Slot, q.Parts, deadline)
	})
}

// Block returns the block at slot. A missing one is a *ledger.NotFoundError that tells
// skipped, not yet produced, pruned and not indexed apart.
func (e *Engine) Block(q ledger.Query, slot ledger.Slot) (ledger.BlockAnswer, ledger.View, error) {
	return answer(e, q, func(v ledger.View, deadline time.Time) (ledger.BlockAnswer, error) {
		return e.block(v, slot, q.Parts, deadline)
	})
}

func (e *Engine) block(v ledger.View, slot ledger.Slot, parts ledger.BlockParts, deadline time.Time) (ledger.BlockAnswer, error) {
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
	b, err := e.held(v, slot, deadline)
	if err != nil {
		return ledger.BlockAnswer{}, err
	}
	if b != nil {
		return ledger.BlockAnswer{Block: partsOf(b, parts), Commitment: v.Head.CommitmentOf(slot)}, nil
	}
	above, err := e.blockAbove(v, slot, deadline)
	if err != nil {
		return ledger.BlockAnswer{}, err
	}
	// Only the parent link of the next block proves that there is none here.
	if above != nil && above.ParentSlot < slot {
		return absent(ledger.SlotSkipped)
	}
	return absent(ledger.SlotNotIndexed)
}

// partsOf returns a block with as much of its transactions as is wanted.
func partsOf(b *shard.HeldBlock, parts ledger.BlockParts) *ledger.Block {
	switch parts {
	case ledger.NoTransactions:
		return b.Block
	case ledger.SignaturesOnly:
		brief := *b.Block
		brief.Transactions = b.Signatures()
		return &brief
	default:
		return b.Whole()
	}
}

func (e *Engine) held(v ledger.View, slot ledger.Slot, deadline time.Time) (*shard.HeldBlock, error) {
	return e.shards[shard.OfSlot(slot, len(e.shards))].Block(slot, v.Tip().Version, deadline)
}

// blockAbove returns the next block of the chain above slot, nil if there is none.
func (e *Engine) blockAbove(v ledger.View, slot ledger.Slot, deadline time.Time) (*ledger.Block, error) {
	var next *ledger.Block
	for _, s := range e.shards {
		above, err := s.BlockAbove(slot, v.Tip().Version, deadline)
		if err != nil {
			return nil, err
		}
		if above != nil && (next == nil || above.Block.Slot < next.Slot) {
			next = above.Block
		}
	}
	return next, nil
}

// recentPage is a page of transactions, and whether the interval goes on after it.
type recentPage struct {
	transactions []*ledger.Transaction
	more         bool
}

// Recent returns the newest transactions strictly between two others, newest first, and
// whether there are more of them. Bounds that are not held are a *ledger.NotFoundError.
func (e *Engine) Recent(q ledger.Query, r ledger.RecentRange) ([]*ledger.Transaction, bool, ledger.View, error) {
	page, v, err := answer(e, q, func(v ledger.View, deadline time.Time) (recentPage, error) {
		return e.recent(v, r, deadline)
	})
	return page.transactions, page.more, v, err
}

func (e *Engine) recent(v ledger.View, r ledger.RecentRange, deadline time.Time) (page recentPage, err error) {
	before, after, err := e.bounds(v, r, deadline)
	if err != nil || !v.Head.HasBlock {
		return page, err
	}
	slot := v.Tip().Slot
	if before != nil {
		slot = before.Slot
	}
	for {
		b, err := e.held(v, slot, deadline)
		if err != nil || b == nil || after != nil && slot < after.Slot {
			return page, err
		}
		first, last := 0, b.Len()
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
		if !b.HasPrevious || b.Previous < v.Head.Floor || after != nil && b.Previous < after.Slot {
			return page, nil
		}
		slot = b.Previous
	}
}

// bounds looks the interval's ends up; nil where it is open.
func (e *Engine) bounds(v ledger.View, r ledger.RecentRange, deadline time.Time) (before, after *ledger.Transaction, err error) {
	if r.Before.Known {
		if before, err = e.transaction(v, r.Before.Value, deadline); err != nil {
			return nil, nil, err
		}
	}
	if r.After.Known {
		if after, err = e.transaction(v, r.After.Value, deadline); err != nil {
			return nil, nil, err
		}
	}
	return before, after, nil
}
