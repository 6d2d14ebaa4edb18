package yellowstone

import (
	"context"
	"fmt"

	"ledgerd/engine/ledger"
)

// believedMiscounts is the number of miscounts after which a server is known to count more transactions than it sends: then
// blocks with too few are sealed at once.
const believedMiscounts = 3

// believedBlocks is the number of whole blocks after which a miscount is forgotten, and the server asked again.
const believedBlocks = 512

// TwoBlocksError: a stream showed two blocks at a slot, and called neither dead.
type TwoBlocksError struct{ Slot ledger.Slot }

func (e *TwoBlocksError) Error() string {
	return fmt.Sprintf("the stream shows two blocks at slot %d", e.Slot)
}

// ShortError: a live stream called a block confirmed before it sent all of its transactions. The caller begins another
// stream before that slot. If that sends no more, the block is sealed with the transactions that came.
type ShortError struct {
	Slot         ledger.Slot
	Sent, Counts uint64
}

func (e *ShortError) Error() string {
	return fmt.Sprintf("the stream sent %d of the %d transactions of slot %d", e.Sent, e.Counts, e.Slot)
}

// sealIfWhole seals the block of a slot if it is whole, or if it is confirmed.
func (a *Assembler) sealIfWhole(ctx context.Context, slot ledger.Slot, s *assembly) error {
	if s.head == nil {
		return nil
	}
	whole := a.whole(s)
	switch {
	case s.claimed == 0 && !s.processed:
		return nil
	case !a.begun(s):
		s.inPart = true
		return nil
	case s.claimed == 0 && !whole:
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

// whole reports whether all transactions came that the block waits for.
func (a *Assembler) whole(s *assembly) bool {
	return !a.HasTransactions || uint64(len(s.indexes)) >= s.head.Transactions
}

// begun reports whether the stream showed a slot from its begin, see the package comment.
func (a *Assembler) begun(s *assembly) bool {
	if !a.Live || s.begun || s.replayed {
		return true
	}
	at, ok := a.frozen.get(s.head.ParentSlot)
	return s.followed && ok && at <= s.since
}

// parent returns the assembly of the block that another builds on, nil if there is none with a head. A parent is below its
// child: a genesis block names itself, and heads may name each other.
func (a *Assembler) parent(child ledger.Slot, head *Head) *assembly {
	s := a.slots[head.ParentSlot]
	if head.ParentSlot >= child || s == nil || s.head == nil || head.ParentHash.Known && head.ParentHash.Value != s.head.Hash {
		return nil
	}
	return s
}

// follow notes that a block builds on its parent of which no status said that it began.
func (a *Assembler) follow(ctx context.Context, child ledger.Slot, head *Head) error {
	parent := a.parent(child, head)
	if parent == nil || !a.Live {
		return nil
	}
	parent.followed = true
	return a.sealIfWhole(ctx, head.ParentSlot, parent)
}

// sealParent seals the parent of a confirmed block, which is confirmed too.
func (a *Assembler) sealParent(ctx context.Context, child ledger.Slot, s *assembly) error {
	parent := a.parent(child, s.head)
	if parent == nil {
		return nil
	}
	if parent.claimed == 0 {
		parent.claimed = ledger.StatusConfirmed
	}
	return a.sealIfWhole(ctx, s.head.ParentSlot, parent)
}

// seal emits the block of a slot and then its status.
func (a *Assembler) seal(ctx context.Context, slot ledger.Slot, s *assembly, whole bool) error {
	a.drop(slot, s)
	a.inherit(slot, s)
	a.remember(slot, s)
	a.end(slot, ending{hash: s.head.Hash, bank: s.bank})
	if a.Counts.Sealed++; a.Counts.Sealed%keptSlots == 0 && slot > 2*keptSlots {
		a.forget(slot - keptSlots) // the stream may have no finalized statuses
	}
	switch {
	case !whole:
		a.Counts.Incomplete++
	case a.miscounts > 0:
		if a.wholes++; a.wholes%believedBlocks == 0 {
			a.miscounts--
		}
	}
	if err := a.emit(ctx, s.seal(slot)); err != nil {
		return err
	}
	if s.claimed == 0 {
		return nil
	}
	return a.emit(ctx, &ledger.SlotStatus{Slot: slot, Status: s.claimed, Blockhash: ledger.Some(s.head.Hash)})
}

// missed takes the lowest confirmed block below a slot that still misses transactions. It returns a ShortError for it, and
// seals it the second time.
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
	return &ShortError{Slot: slot, Sent: uint64(len(s.indexes)), Counts: s.head.Transactions}
}

// freeze notes that a slot was processed: updates of its children that come later are from their begin.
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
