package yellowstone

import (
	"cmp"
	"context"
	"slices"

	"ledgerd/engine/ledger"
)

// takeStatus takes what a validator says of a slot.
func (a *Assembler) takeStatus(ctx context.Context, u *Update) error {
	switch u.Status {
	case Processed:
		a.freeze(u.Slot)
		s := a.at(u)
		if s.isOver() {
			a.Counts.Duplicates++
		}
		s.processed = true
		return a.advance(ctx, s)
	case Confirmed:
		return a.claim(ctx, u, ledger.StatusConfirmed)
	case Finalized:
		err := a.claim(ctx, u, ledger.StatusFinalized)
		a.forget(u.Slot)
		return err
	case Dead:
		return a.takeDead(ctx, u)
	case CreatedBank:
		a.takeCreatedBank(u)
	case FirstShred:
		a.begin(u, beginShred)
	}
	return nil
}

// freeze notes that a slot was processed: updates of its children that come later are from their begin.
func (a *Assembler) freeze(at ledger.Slot) {
	if a.Live {
		s := a.slots[at]
		s.frozen = cmp.Or(s.frozen, a.taken)
		a.slots[at] = s
	}
}

// takeCreatedBank notes that the validator begins the block of a slot, or begins it anew: what came before belongs to another try.
func (a *Assembler) takeCreatedBank(u *Update) {
	if slot, isKnown := a.slots[u.Slot]; isKnown {
		slot.over = slices.DeleteFunc(slot.over, func(s *assembly) bool { return isTry(s.bank, u.Bank) && (s.state == dead || a.Live && s.bank == 0) })
		a.slots[u.Slot] = slot
	}
	if s := a.try(u); s != nil && !s.isOver() && s.begin == beginBank && a.Live && u.Bank == 0 {
		a.drop(s)
	}
	if u.Bank == 0 {
		a.begin(u, beginBank)
	} else {
		a.begin(u, beginNumbered)
	}
}

// begin notes how the stream begins to show a block.
func (a *Assembler) begin(u *Update, how begin) {
	if a.Live {
		s := a.at(u)
		s.begin = max(s.begin, how)
		slot := a.slots[u.Slot]
		slot.begun = cmp.Or(slot.begun, a.taken)
		a.slots[u.Slot] = slot
	}
}

// claim emits a status of a slot after its block. The status has no hash if this stream did not show the block: an earlier
// stream may have shown another one at that slot.
func (a *Assembler) claim(ctx context.Context, u *Update, status ledger.Status) error {
	a.freeze(u.Slot)
	if err := a.missed(ctx, u.Slot); err != nil {
		return err
	}
	s, e := a.claimedTry(u), &ledger.SlotStatus{Slot: u.Slot, Status: status}
	if s != nil && !s.isOver() {
		s.claimed = max(s.claimed, status)
		if err := a.advance(ctx, s); err != nil || s.state != inPart { // the block may not come before its children
			return err
		}
	}
	switch {
	case s == nil:
	case s.state == dead:
		return nil // status of a dead slot: ignore
	default:
		e.Blockhash = ledger.Some(s.head.Hash)
	}
	return a.emit(ctx, e)
}

// takeDead drops the try that a status is about, and emits the status dead. A validator that numbers banks does not say which is dead: it
// is the newest that is known. Another one may write before a status says that it was created.
func (a *Assembler) takeDead(ctx context.Context, u *Update) error {
	s, bank := a.try(u), u.Bank
	if s != nil {
		bank = cmp.Or(bank, s.bank)
	}
	if s != nil && !s.isOver() {
		a.drop(s)
		s = a.try(u)
	}
	e := &ledger.SlotStatus{Slot: u.Slot, Status: ledger.StatusDead}
	switch {
	case s == nil:
	case s.state == dead:
		a.Counts.Duplicates++
		a.end(s, dead)
		return nil
	case s.state == sealed:
		e.Blockhash = ledger.Some(s.head.Hash)
	}
	over := &assembly{slot: u.Slot, bank: u.Bank}
	a.end(over, dead)
	over.bank = bank
	return a.emit(ctx, e)
}
