package yellowstone

import (
	"context"
	"fmt"
	"slices"

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

// sealIfWhole seals a block if it is whole, or if it is confirmed.
func (a *Assembler) sealIfWhole(ctx context.Context, s *assembly) error {
	if s.head == nil {
		return nil
	}
	whole := a.whole(s)
	switch {
	case s.claimed == 0 && !s.processed:
		return nil
	case !a.begun(s):
		s.wants = wantsBegin
		return nil
	case s.claimed == 0 && !whole:
		return nil
	case !whole && a.Live && a.miscounts < believedMiscounts:
		s.wants = wantsTransactions
		return nil
	}
	if s.claimed != 0 {
		if err := a.sealParent(ctx, s); err != nil {
			return err
		}
	}
	return a.seal(ctx, s, whole)
}

// whole reports whether all transactions came that the block waits for.
func (a *Assembler) whole(s *assembly) bool {
	return !a.HasTransactions || uint64(len(s.indexes)) >= s.head.Transactions
}

// begun reports whether the stream showed a slot from its begin, see the package comment.
func (a *Assembler) begun(s *assembly) bool {
	if !a.Live || s.begin != beginUnsaid {
		return true
	}
	at, ok := a.frozen.get(s.head.ParentSlot)
	return s.followed && ok && at <= s.since
}

// parent returns the assembly of the block that another builds on, nil if there is none with a head. A parent is below its
// child: a genesis block names itself, and heads may name each other.
func (a *Assembler) parent(child *assembly) *assembly {
	head := child.head
	for _, s := range slices.Backward(a.slots[head.ParentSlot]) {
		if head.ParentSlot < child.slot && s.head != nil && (!head.ParentHash.Known || head.ParentHash.Value == s.head.Hash) {
			return s
		}
	}
	return nil
}

// follow notes that a block builds on its parent of which no status said that it began.
func (a *Assembler) follow(ctx context.Context, child *assembly) error {
	parent := a.parent(child)
	if parent == nil || !a.Live {
		return nil
	}
	parent.followed = true
	return a.sealIfWhole(ctx, parent)
}

// sealParent seals the parent of a confirmed block, which is confirmed too.
func (a *Assembler) sealParent(ctx context.Context, child *assembly) error {
	parent := a.parent(child)
	if parent == nil {
		return nil
	}
	if parent.claimed == 0 {
		parent.claimed = ledger.StatusConfirmed
	}
	return a.sealIfWhole(ctx, parent)
}

// seal emits a block and then its status.
func (a *Assembler) seal(ctx context.Context, s *assembly, whole bool) error {
	a.drop(s)
	a.inherit(s)
	a.remember(s)
	a.end(s.slot, ending{hash: s.head.Hash, bank: s.bank})
	if a.Counts.Sealed++; a.Counts.Sealed%keptSlots == 0 && s.slot > 2*keptSlots {
		a.forget(s.slot - keptSlots) // the stream may have no finalized statuses
	}
	switch {
	case !whole:
		a.Counts.Incomplete++
	case a.miscounts > 0:
		if a.wholes++; a.wholes%believedBlocks == 0 {
			a.miscounts--
		}
	}
	if err := a.emit(ctx, s.seal()); err != nil {
		return err
	}
	if s.claimed == 0 {
		return nil
	}
	return a.emit(ctx, &ledger.SlotStatus{Slot: s.slot, Status: s.claimed, Blockhash: ledger.Some(s.head.Hash)})
}

// missed takes the lowest confirmed block below a slot that still misses transactions. It returns a ShortError for it, and
// seals it the second time.
func (a *Assembler) missed(ctx context.Context, later ledger.Slot) error {
	var s *assembly
	for other := range a.tries() {
		if other.wants == wantsTransactions && other.slot < later && (s == nil || other.slot < s.slot) {
			s = other
		}
	}
	switch {
	case s == nil:
		return nil
	case s.slot == a.asked:
		a.miscounts++
		return a.seal(ctx, s, false)
	}
	a.asked = s.slot
	return &ShortError{Slot: s.slot, Sent: uint64(len(s.indexes)), Counts: s.head.Transactions}
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

// keptTries bounds the tries of a slot that are remembered.
const keptTries = 8

// end notes what became of a try of a slot, in the place of what was noted of it.
func (a *Assembler) end(slot ledger.Slot, e ending) {
	e.stream = a.stream
	ends, _ := a.done.get(slot)
	ends = slices.DeleteFunc(ends, func(o ending) bool { return o.stream != a.stream || isTry(o.bank, e.bank) })
	a.done.put(slot, append(ends[max(0, len(ends)+1-keptTries):], e))
}

// forgetEnding forgets what became of the tries of a slot that a bank is about.
func (a *Assembler) forgetEnding(u *Update, is func(ending) bool) {
	if ends, ok := a.done.get(u.Slot); ok {
		a.done.put(u.Slot, slices.DeleteFunc(ends, func(e ending) bool { return isTry(e.bank, u.Bank) && is(e) }))
	}
}
