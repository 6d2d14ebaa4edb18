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

// takeCreatedBank notes that the validator begins the block of a slot, or begins it anew: what came before belongs to another try. Where banks
// are not numbered the same status may have come twice, so only a replay tells what belongs to the try; and a block that is sealed stays
// that of the slot until another is processed.
func (a *Assembler) takeCreatedBank(u *Update) {
	if slot, isKnown := a.slots[u.Slot]; isKnown {
		slot.over = slices.DeleteFunc(slot.over, func(s *assembly) bool { return isTry(s.bank, u.Bank) && s.state == dead })
		a.slots[u.Slot] = slot
	}
	switch s := a.try(u); {
	case !a.Live || s == nil:
	case s.isOver() && s.bank == 0:
		a.add(u)
	case !s.isEmpty() && s.begin == beginBank && u.Bank == 0:
		a.lose(s)
		a.drop(s)
		a.add(u).since = 0
	}
	if u.Bank == 0 {
		a.begin(u, beginBank)
	} else {
		a.begin(u, beginAmid)
	}
}

// begin notes how the stream begins to show a block. A status that comes when a part of the block did, or a status of its end, proves nothing of what
// came before.
func (a *Assembler) begin(u *Update, how begin) {
	if !a.Live {
		return
	}
	switch s := a.at(u); {
	case s.begin > beginAmid:
		s.begin = max(s.begin, how)
	case s.begin == beginUnsaid && s.isEmpty() && !s.processed && !slices.Contains(a.unseen, u.Slot) && s.since > 0:
		s.begin = how
	default:
		s.begin = beginAmid
	}
	slot := a.slots[u.Slot]
	slot.begun = cmp.Or(slot.begun, a.taken)
	a.slots[u.Slot] = slot
}

// claim emits a status of a slot after its block. The status has no hash if this stream did not show the block: an earlier
// stream may have shown another one at that slot.
func (a *Assembler) claim(ctx context.Context, u *Update, status ledger.Status) error {
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
		a.unseen = append(a.unseen[max(0, len(a.unseen)+1-keptBlocks):], u.Slot)
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
	e := &ledger.SlotStatus{Slot: u.Slot, Status: ledger.StatusDead}
	over := &assembly{slot: u.Slot, bank: u.Bank}
	s := a.try(u)
	if s != nil {
		over.bank = cmp.Or(u.Bank, s.bank)
	}
	switch {
	case s == nil:
	case s.state == dead:
		a.Counts.Duplicates++
		a.end(s, dead)
		return nil
	case s.state == sealed:
		e.Blockhash = ledger.Some(s.head.Hash)
	default:
		a.drop(s)
	}
	a.end(over, dead)
	return a.emit(ctx, e)
}
