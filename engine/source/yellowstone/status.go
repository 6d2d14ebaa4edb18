package yellowstone

import (
	"context"

	"ledgerd/engine/ledger"
)

// takeStatus takes what a validator says of a slot.
func (a *Assembler) takeStatus(ctx context.Context, u *Update) error {
	switch u.Status {
	case Processed:
		a.freeze(u.Slot)
		return a.processed(ctx, u.Slot)
	case Confirmed:
		return a.claim(ctx, u.Slot, ledger.StatusConfirmed)
	case Finalized:
		err := a.claim(ctx, u.Slot, ledger.StatusFinalized)
		a.forget(u.Slot)
		return err
	case Dead:
		return a.dead(ctx, u)
	case CreatedBank:
		return a.createdBank(u)
	case FirstShred:
		_, err := a.begin(u.Slot)
		return err
	}
	return nil
}

// createdBank notes that the validator begins the block of a slot, or begins it anew: what came before belongs to another try.
func (a *Assembler) createdBank(u *Update) error {
	if end, ok := a.done.get(u.Slot); ok && (end.dead || end.stream == a.stream && a.Live) {
		a.done.delete(u.Slot)
	}
	if s := a.slots[u.Slot]; s != nil && s.banked && a.Live {
		a.drop(u.Slot, s)
	}
	s, err := a.begin(u.Slot)
	if s != nil {
		s.banked, s.bank = true, u.Bank
	}
	return err
}

// begin notes that the stream shows a slot from its begin, and returns its assembly, nil where none is needed.
func (a *Assembler) begin(slot ledger.Slot) (*assembly, error) {
	if _, ok := a.over(slot); ok || !a.Live {
		return nil, nil
	}
	s, err := a.at(slot, 0)
	if err == nil {
		s.begun = true
	}
	return s, err
}

// processed notes that a slot's bank is frozen: no transaction of it writes any more.
func (a *Assembler) processed(ctx context.Context, slot ledger.Slot) error {
	if _, ok := a.over(slot); ok {
		a.Counts.Duplicates++
		return nil
	}
	s, err := a.at(slot, 0)
	if err != nil {
		return err
	}
	s.processed = true
	return a.sealIfWhole(ctx, slot, s)
}

// claim emits a status of a slot after its block. The status has no hash if this stream did not show the block: an earlier
// stream may have shown another one at that slot.
func (a *Assembler) claim(ctx context.Context, slot ledger.Slot, status ledger.Status) error {
	a.freeze(slot)
	if err := a.missed(ctx, slot); err != nil {
		return err
	}
	e := &ledger.SlotStatus{Slot: slot, Status: status}
	if s := a.slots[slot]; s != nil {
		s.claimed = max(s.claimed, status)
		if err := a.sealIfWhole(ctx, slot, s); err != nil || !s.inPart || a.slots[slot] == nil {
			return err
		}
		e.Blockhash = ledger.Some(s.head.Hash) // the block may not come before its children
	} else if end, ok := a.over(slot); ok {
		if end.dead {
			return nil // status of a dead slot: ignore
		}
		e.Blockhash = ledger.Some(end.hash)
	}
	return a.emit(ctx, e)
}

// dead drops the assembly of a slot, and emits the status dead.
func (a *Assembler) dead(ctx context.Context, u *Update) error {
	slot := u.Slot
	if s := a.slots[slot]; s != nil {
		a.drop(slot, s)
	}
	end, emitted := a.over(slot)
	if end.dead {
		a.Counts.Duplicates++
		a.end(slot, end)
		return nil
	}
	a.end(slot, ending{dead: true, bank: u.Bank})
	e := &ledger.SlotStatus{Slot: slot, Status: ledger.StatusDead}
	if emitted {
		e.Blockhash = ledger.Some(end.hash)
	}
	return a.emit(ctx, e)
}

// forget drops the assemblies that are keptSlots and more below a slot.
func (a *Assembler) forget(below ledger.Slot) {
	for slot, s := range a.slots {
		if slot+keptSlots < below {
			a.drop(slot, s)
			a.Counts.Dropped++
		}
	}
}
