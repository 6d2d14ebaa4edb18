package yellowstone

import (
	"context"
	"fmt"

	"ledgerd/engine/ledger"
)

// believedMiscounts is after how many blocks a server is known to count more transactions than it
// has: it is not asked again for each block.
const believedMiscounts = 3

// TwoBlocksError says that a stream showed two blocks at a slot, and of neither that it was given up.
type TwoBlocksError struct{ Slot ledger.Slot }

func (e *TwoBlocksError) Error() string {
	return fmt.Sprintf("the stream shows two blocks at slot %d", e.Slot)
}

// ShortError says that a live stream told of finality of a block before it sent all of its
// transactions. The stream is to begin again before that slot; where it sends no more then, its count
// of transactions is not believed any longer.
type ShortError struct {
	Slot         ledger.Slot
	Sent, Counts uint64
}

func (e *ShortError) Error() string {
	return fmt.Sprintf("the stream sent %d of the %d transactions of slot %d", e.Sent, e.Counts, e.Slot)
}

// sealIfWhole seals the block of a slot if all of it is there, or a status says that it is.
func (a *Assembler) sealIfWhole(ctx context.Context, slot ledger.Slot, s *assembly) error {
	if s.head == nil {
		return nil
	}
	whole := a.whole(s)
	switch {
	case s.claimed == 0 && !(whole && s.processed):
		return nil
	case !a.begun(s):
		a.drop(slot, s)
		a.Counts.Partial++
		a.end(slot, ending{hash: s.head.Hash, bank: s.bank, partial: true})
		return nil
	case !whole && a.Live && a.miscounts < believedMiscounts:
		s.short = true
		return nil
	}
	if s.claimed != 0 {
		if err := a.sealParent(ctx, slot, s); err != nil {
			return err
		}
	}
	return a.seal(ctx, slot, s, whole)
}

// whole reports whether all transactions are there, as far as they are waited for.
func (a *Assembler) whole(s *assembly) bool {
	return !a.HasTransactions || uint64(len(s.transactions)) >= s.head.Transactions
}

// begun reports whether the stream showed a slot from its begin: it told of it before the first
// update, or told before that its parent was over.
func (a *Assembler) begun(s *assembly) bool {
	if !a.Live || s.begun {
		return true
	}
	at, ok := a.frozen.get(s.head.ParentSlot)
	return ok && at <= s.since
}

// sealParent seals the block that a claimed one builds on: what is said of the one is said of
// the other. A parent is below its child: a genesis block names itself, and heads may name each other.
func (a *Assembler) sealParent(ctx context.Context, child ledger.Slot, s *assembly) error {
	slot := s.head.ParentSlot
	parent := a.slots[slot]
	if slot >= child || parent == nil || parent.head == nil || s.head.ParentHash.Known && s.head.ParentHash.Value != parent.head.Hash {
		return nil
	}
	if parent.claimed == 0 {
		parent.claimed = ledger.StatusConfirmed
	}
	return a.sealIfWhole(ctx, slot, parent)
}

// seal emits the block of a slot and what was said of it.
func (a *Assembler) seal(ctx context.Context, slot ledger.Slot, s *assembly, whole bool) error {
	a.drop(slot, s)
	a.inherit(slot, s)
	a.remember(slot, s)
	a.end(slot, ending{hash: s.head.Hash, bank: s.bank})
	if a.Counts.Sealed++; a.Counts.Sealed%keptSlots == 0 && slot > 2*keptSlots {
		a.forget(slot - keptSlots) // the stream may never tell of finality
	}
	switch {
	case !whole:
		a.Counts.Incomplete++
	case len(s.transactions) > 0:
		a.miscounts = 0
	}
	if err := a.emit(ctx, s.seal(slot)); err != nil {
		return err
	}
	if s.claimed == 0 {
		return nil
	}
	return a.emit(ctx, &ledger.SlotStatus{Slot: slot, Status: s.claimed, Blockhash: ledger.Some(s.head.Hash)})
}

// missed says which claimed block is still short of transactions now that more was said of a later
// slot: the lowest. The second time it is sealed, as the server has no more of it.
func (a *Assembler) missed(ctx context.Context, later ledger.Slot) error {
	slot := later
	for at, s := range a.slots {
		if s.short && at < slot {
			slot = at
		}
	}
	s := a.slots[slot]
	switch {
	case slot == later:
		return nil
	case slot == a.asked:
		a.miscounts++
		return a.seal(ctx, slot, s, false)
	}
	a.asked = slot
	return &ShortError{Slot: slot, Sent: uint64(len(s.transactions)), Counts: s.head.Transactions}
}

// freeze notes that a slot is over, so that those that build on it begin after.
func (a *Assembler) freeze(slot ledger.Slot) {
	if !a.Live {
		return
	}
	if _, ok := a.frozen.get(slot); !ok {
		a.frozen.put(slot, a.taken)
	}
}

// end notes what became of a slot's block.
func (a *Assembler) end(slot ledger.Slot, e ending) {
	e.stream = a.stream
	a.done.put(slot, e)
}
