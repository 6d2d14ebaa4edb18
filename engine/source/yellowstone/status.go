package yellowstone

import (
	"context"

	"ledgerd/engine/ledger"
)

// takeStatus takes what a validator says of a slot.
func (a *Assembler) takeStatus(ctx context.Context, u *Update) error {
	switch u.Status {
	case Processed:
		return a.processed(ctx, u.Slot)
	case Confirmed:
		return a.claim(ctx, u.Slot, ledger.StatusConfirmed)
	case Finalized:
		err := a.claim(ctx, u.Slot, ledger.StatusFinalized)
		a.forget(u.Slot)
		return err
	case Dead:
		return a.dead(ctx, u.Slot)
	case CreatedBank:
		if a.done[u.Slot].dead {
			delete(a.done, u.Slot) // the validator tries the slot again
		}
	}
	return nil
}

// processed notes that a slot's bank is frozen: no transaction of it writes any more.
func (a *Assembler) processed(ctx context.Context, slot ledger.Slot) error {
	if _, ok := a.over(slot); ok {
		a.Counts.Duplicates++
		return nil
	}
	s, err := a.at(slot)
	if err != nil {
		return err
	}
	s.processed = true
	return a.sealIfWhole(ctx, slot, s)
}

// claim passes on what a slot came to, after its block. Of a slot that was not seen it is passed on
// as it is: the block may have come before this stream.
func (a *Assembler) claim(ctx context.Context, slot ledger.Slot, status ledger.Status) error {
	if s := a.slots[slot]; s != nil {
		s.claimed = max(s.claimed, status)
		return a.sealIfWhole(ctx, slot, s)
	}
	e := &ledger.SlotStatus{Slot: slot, Status: status}
	if end, ok := a.done[slot]; ok {
		if end.dead {
			return nil // a late word about what is broken
		}
		e.Blockhash = ledger.Some(end.hash)
	}
	return a.Emit(ctx, e)
}

// dead drops a slot's block, and takes it back if it was emitted.
func (a *Assembler) dead(ctx context.Context, slot ledger.Slot) error {
	if s := a.slots[slot]; s != nil {
		a.bytes -= s.bytes
		delete(a.slots, slot)
	}
	end, emitted := a.done[slot]
	if end.dead {
		a.Counts.Duplicates++
		a.end(slot, end)
		return nil
	}
	a.Counts.Dead++
	a.end(slot, ending{dead: true})
	e := &ledger.SlotStatus{Slot: slot, Status: ledger.StatusDead}
	if emitted {
		e.Blockhash = ledger.Some(end.hash)
	}
	return a.Emit(ctx, e)
}

// forget drops what lies too far below a slot to come to anything.
func (a *Assembler) forget(below ledger.Slot) {
	for slot, s := range a.slots {
		if slot+keptSlots < below {
			a.bytes -= s.bytes
			delete(a.slots, slot)
			a.Counts.Dropped++
		}
	}
	for slot := range a.done {
		if slot+keptSlots < below {
			delete(a.done, slot)
		}
	}
}
