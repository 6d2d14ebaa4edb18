package sim

import (
	"context"

	"ledgerd/engine/ledger"
)

// confirmLag is how many slots a block is confirmed after it, unless finality is faster. It is
// less than the depth of a branch: only the chain that stays is ever confirmed.
const confirmLag = 2

// chain walks the slots: it produces the blocks of the chain that stays and of the branches
// that do not, and reports what became confirmed and finalized.
type chain struct {
	*producer
	tip       tip   // the newest block
	branchAt  tip   // while a branch is built: the block it began at
	unsettled []tip // blocks of the chain that stays which are not yet finalized
	confirmed int   // how many of unsettled, from the first, are confirmed
}

// advance emits what happens in the slot after the last one: its block, if it has one, then the
// statuses that became due.
func (c *chain) advance(ctx context.Context, slot ledger.Slot, emit ledger.Emit) error {
	if b := c.next(slot); b != nil {
		if err := emit(ctx, b); err != nil {
			return err
		}
	}
	finality := c.schedule.finality
	for ; c.due(c.confirmed, min(confirmLag, finality), slot); c.confirmed++ {
		if err := emit(ctx, c.unsettled[c.confirmed].status(ledger.StatusConfirmed)); err != nil {
			return err
		}
	}
	for ; c.due(0, finality, slot); c.confirmed-- {
		if err := emit(ctx, c.unsettled[0].status(ledger.StatusFinalized)); err != nil {
			return err
		}
		c.unsettled = c.unsettled[1:]
	}
	return nil
}

// due reports whether the n-th of the unsettled blocks is so many slots old.
func (c *chain) due(n int, lag uint64, slot ledger.Slot) bool {
	return n < len(c.unsettled) && c.unsettled[n].slot+ledger.Slot(lag) <= slot
}

// next produces the block of a slot, nil if it is skipped.
func (c *chain) next(slot ledger.Slot) *ledger.Block {
	kind := c.schedule.kind(slot)
	switch {
	case kind == skippedSlot:
		return nil
	case kind == branchBlock && !c.branch:
		c.branchAt = c.tip
		c.branch = true
	case kind == mainBlock && c.branch:
		c.abandonBranch()
		c.tip = c.branchAt
	}
	b := c.produce(slot, c.tip)
	c.tip = tip{b.Slot, b.Blockhash, b.Height.Value}
	if kind == mainBlock {
		c.unsettled = append(c.unsettled, c.tip)
	}
	return b
}

func (s tip) status(status ledger.Status) *ledger.SlotStatus {
	return &ledger.SlotStatus{Slot: s.slot, Status: status, Blockhash: ledger.Some(s.hash)}
}
