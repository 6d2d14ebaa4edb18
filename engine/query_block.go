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
		return e.block(v, v.Tip().Slot, deadline)
	})
}

// Block returns the block at slot. A missing one is a *ledger.NotFoundError that tells
// skipped, not yet produced, pruned and not indexed apart.
func (e *Engine) Block(q ledger.Query, slot ledger.Slot) (ledger.BlockAnswer, ledger.View, error) {
	return answer(e, q, func(v ledger.View, deadline time.Time) (ledger.BlockAnswer, error) {
		return e.block(v, slot, deadline)
	})
}

func (e *Engine) block(v ledger.View, slot ledger.Slot, deadline time.Time) (ledger.BlockAnswer, error) {
	absent := func(why ledger.Absence) (ledger.BlockAnswer, error) {
		return ledger.BlockAnswer{}, &ledger.NotFoundError{Absence: why}
	}
	switch {
	case !v.Head.HasBlock || slot > v.Tip().Slot:
		return absent(ledger.SlotNotYetProduced)
	case slot < v.Head.Root:
		return absent(ledger.SlotNotIndexed)
	case slot < v.Head.Floor:
		return absent(ledger.SlotPruned)
	}
	b, err := e.held(v, slot, deadline)
	if err != nil {
		return ledger.BlockAnswer{}, err
	}
	if b != nil {
		return ledger.BlockAnswer{Block: b.Block, Commitment: v.Head.CommitmentOf(slot)}, nil
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
		if err != nil || b == nil {
			return page, err
		}
		last := len(b.Block.Transactions)
		if before != nil && slot == before.Slot {
			last = int(before.Index)
		}
		for i := last - 1; i >= 0; i-- {
			t := &b.Block.Transactions[i]
			if after != nil && !newer(t, after) {
				return page, nil
			}
			if len(page.transactions) == r.Limit {
				page.more = true
				return page, nil
			}
			page.transactions = append(page.transactions, t)
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

// newer reports whether t stands above o in the list.
func newer(t, o *ledger.Transaction) bool {
	return t.Slot > o.Slot || t.Slot == o.Slot && t.Index > o.Index
}
