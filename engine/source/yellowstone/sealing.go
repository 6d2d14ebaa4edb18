package yellowstone

import (
	"context"
	"fmt"

	"ledgerd/engine/ledger"
)

const (
	// versionedBlocks is of how many of the newest blocks the write versions are kept, to tell a
	// write that comes late from one that comes again.
	versionedBlocks = 32
	// believedMiscounts is after how many blocks a server is known to count more transactions than it
	// has: it is not asked again for each block.
	believedMiscounts = 3
)

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
		a.short[slot] = struct{}{} // what was under way may still come
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
	a.catchUp(slot, s)
	a.remember(slot)
	a.end(slot, ending{hash: s.head.Hash, parent: a.parentOf(s), bank: s.bank, wrote: s.written})
	if a.Counts.Sealed++; a.Counts.Sealed%keptSlots == 0 && slot > 2*keptSlots {
		a.forget(slot - keptSlots) // the stream may never tell of finality
	}
	switch {
	case !whole:
		a.Counts.Incomplete++
	case len(s.transactions) > 0:
		a.miscounts = 0
	}
	if err := a.Emit(ctx, s.seal(slot)); err != nil {
		return err
	}
	if s.claimed == 0 {
		return nil
	}
	return a.Emit(ctx, &ledger.SlotStatus{Slot: slot, Status: s.claimed, Blockhash: ledger.Some(s.head.Hash)})
}

// remember notes that the writes of a slot's block are kept, and drops those of the oldest.
func (a *Assembler) remember(slot ledger.Slot) {
	place := &a.versioned[a.Counts.Sealed%versionedBlocks]
	if e, ok := a.done.get(*place); ok && *place != slot {
		e.wrote = written{}
		a.done.put(*place, e)
	}
	*place = slot
}

// missed says which claimed block is still short of transactions now that more was said of a later
// slot. The second time it is believed that there are no more.
func (a *Assembler) missed(ctx context.Context, later ledger.Slot) error {
	for slot := range a.short {
		s := a.slots[slot]
		if s == nil || slot >= later {
			continue
		}
		if _, again := a.asked[slot]; again {
			a.miscounts++
			return a.seal(ctx, slot, s, false)
		}
		if len(a.asked) >= keptSlots {
			clear(a.asked)
		}
		a.asked[slot] = struct{}{}
		return &ShortError{Slot: slot, Sent: uint64(len(s.transactions)), Counts: s.head.Transactions}
	}
	return nil
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
	if _, ok := a.over(slot); !ok {
		a.done.delete(slot) // what an earlier stream told is older
	}
	e.stream = a.stream
	a.done.put(slot, e)
}
