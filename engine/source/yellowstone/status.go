package yellowstone

import (
	"context"
	"slices"

	"ledgerd/engine/ledger"
)

// takeStatus takes what a validator says of a slot.
func (a *Assembler) takeStatus(ctx context.Context, u *Update) error {
	switch u.Status {
	case Processed:
		a.freeze(u.Slot)
		return a.processed(ctx, u)
	case Confirmed:
		return a.claim(ctx, u, ledger.StatusConfirmed)
	case Finalized:
		err := a.claim(ctx, u, ledger.StatusFinalized)
		a.forget(u.Slot)
		return err
	case Dead:
		return a.dead(ctx, u)
	case CreatedBank:
		return a.createdBank(u)
	case FirstShred:
		return a.begin(u, beginShred)
	}
	return nil
}

// createdBank notes that the validator begins the block of a slot, or begins it anew: what came before belongs to another try.
func (a *Assembler) createdBank(u *Update) error {
	a.forgetEnding(u, func(e ending) bool { return e.dead || e.stream == a.stream && a.Live && e.bank == 0 })
	if s := a.find(u); s != nil && s.begin == beginBank && a.Live && u.Bank == 0 {
		a.drop(s)
	}
	return a.begin(u, beginBank)
}

// begin notes how the stream begins to show a block.
func (a *Assembler) begin(u *Update, how begin) error {
	if _, ok := a.over(u); ok || !a.Live {
		return nil
	}
	s, err := a.at(u, 0)
	if err == nil {
		s.begin = max(s.begin, how)
	}
	return err
}

// processed notes that a slot's bank is frozen: no transaction of it writes any more.
func (a *Assembler) processed(ctx context.Context, u *Update) error {
	if _, ok := a.over(u); ok {
		a.Counts.Duplicates++
		return nil
	}
	s, err := a.at(u, 0)
	if err != nil {
		return err
	}
	s.processed = true
	return a.sealIfWhole(ctx, s)
}

// claim emits a status of a slot after its block. The status has no hash if this stream did not show the block: an earlier
// stream may have shown another one at that slot.
func (a *Assembler) claim(ctx context.Context, u *Update, status ledger.Status) error {
	a.freeze(u.Slot)
	if err := a.missed(ctx, u.Slot); err != nil {
		return err
	}
	e := &ledger.SlotStatus{Slot: u.Slot, Status: status}
	if end, sealed := a.sealedTry(u); sealed {
		e.Blockhash = ledger.Some(end.hash)
	} else if s := a.find(u); s != nil {
		s.claimed = max(s.claimed, status)
		if err := a.sealIfWhole(ctx, s); err != nil || s.wants != wantsBegin || a.find(u) != s {
			return err
		}
		e.Blockhash = ledger.Some(s.head.Hash) // the block may not come before its children
	} else if end, ok := a.over(u); ok {
		if end.dead {
			return nil // status of a dead slot: ignore
		}
		e.Blockhash = ledger.Some(end.hash)
	}
	return a.emit(ctx, e)
}

// dead drops the assembly of a slot, and emits the status dead.
func (a *Assembler) dead(ctx context.Context, u *Update) error {
	if s := a.find(u); s != nil {
		a.drop(s)
	}
	end, emitted := a.over(u)
	if end.dead {
		a.Counts.Duplicates++
		a.end(u.Slot, end)
		return nil
	}
	a.end(u.Slot, ending{dead: true, bank: u.Bank})
	e := &ledger.SlotStatus{Slot: u.Slot, Status: ledger.StatusDead}
	if emitted {
		e.Blockhash = ledger.Some(end.hash)
	}
	return a.emit(ctx, e)
}

// forget drops the assemblies that are keptSlots and more below a slot.
func (a *Assembler) forget(below ledger.Slot) {
	for slot, tries := range a.slots {
		for _, s := range slices.Clone(tries) {
			if slot+keptSlots < below {
				a.drop(s)
				a.Counts.Dropped++
			}
		}
	}
}
