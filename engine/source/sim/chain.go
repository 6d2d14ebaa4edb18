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
	tip       tip // the newest block
	branchAt  tip // while a branch is built: the block it began at
	unsettled []settling
	confirmed int // how many of unsettled, from the first, are confirmed

	confirmLag, finality ledger.Slot
}

// settling is a block of the chain that stays which is not yet finalized.
type settling struct {
	slot ledger.Slot
	hash ledger.Hash
}

func newChain(p *params, made *producer, at tip) *chain {
	return &chain{
		producer: made, tip: at,
		confirmLag: ledger.Slot(min(confirmLag, p.finality)), finality: ledger.Slot(p.finality),
	}
}

// advance emits what happens in the slot after the last one: its block, if it has one, then the
// statuses that became due.
func (c *chain) advance(ctx context.Context, slot ledger.Slot, emit ledger.Emit) error {
	if b := c.next(slot); b != nil {
		if err := emit(ctx, b); err != nil {
			return err
		}
	}
	for c.confirmed < len(c.unsettled) && c.unsettled[c.confirmed].slot+c.confirmLag <= slot {
		c.confirmed++
		if err := emit(ctx, c.unsettled[c.confirmed-1].status(ledger.StatusConfirmed)); err != nil {
			return err
		}
	}
	settled := 0
	for settled < len(c.unsettled) && c.unsettled[settled].slot+c.finality <= slot {
		settled++
		if err := emit(ctx, c.unsettled[settled-1].status(ledger.StatusFinalized)); err != nil {
			return err
		}
	}
	c.unsettled = append(c.unsettled[:0], c.unsettled[settled:]...)
	c.confirmed -= settled
	return nil
}

// next produces the block of a slot, nil if it is skipped.
func (c *chain) next(slot ledger.Slot) *ledger.Block {
	kind := c.schedule.kind(slot)
	switch {
	case kind == skippedSlot:
		return nil
	case kind == branchBlock && !c.branch:
		c.branchAt = c.tip
		c.beginBranch()
	case kind == mainBlock && c.branch:
		c.abandonBranch()
		c.tip = c.branchAt
	}
	b := c.produce(slot, c.tip)
	c.tip = tip{b.Slot, b.Blockhash, b.Height.Value}
	if kind == mainBlock {
		c.unsettled = append(c.unsettled, settling{b.Slot, b.Blockhash})
	}
	return b
}

func (s settling) status(status ledger.Status) *ledger.SlotStatus {
	return &ledger.SlotStatus{Slot: s.slot, Status: status, Blockhash: ledger.Some(s.hash)}
}
