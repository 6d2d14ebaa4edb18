package yellowstone

import (
	"context"
	"errors"
	"fmt"

	"ledgerd/engine/ledger"
)

// believedMiscounts is the number of miscounts after which a server is known to count more transactions than it sends: then
// blocks with too few are sealed at once.
const believedMiscounts = 3

// believedBlocks is the number of whole blocks after which a miscount is forgotten, and the server asked again.
const believedBlocks = 512

// ErrTwoBlocks: a stream showed two blocks at a slot, and called neither dead.
var ErrTwoBlocks = errors.New("the stream shows two blocks")

// advance brings a try to the state that follows from what came of it, if it is open.
func (a *Assembler) advance(ctx context.Context, s *assembly) error {
	if s.isOver() {
		return nil
	}
	if s.head != nil && (s.processed || s.claimed != 0) && len(s.accounts)+len(s.indexes) == 0 {
		s.endAlone = true
	}
	if next := a.next(s); next != sealed {
		s.state = next
		return nil
	}
	if parent := a.parent(s); parent != nil && s.claimed != 0 { // it is confirmed too
		parent.claimed = max(parent.claimed, ledger.StatusConfirmed)
		if err := a.advance(ctx, parent); err != nil {
			return err
		}
	}
	return a.seal(ctx, s)
}

// whole reports whether all transactions came that the block waits for.
func (a *Assembler) whole(s *assembly) bool {
	return s.head != nil && (!a.HasTransactions || uint64(len(s.indexes)) >= s.head.Transactions)
}

// begun reports whether the stream showed a slot from its begin, see the package comment.
func (a *Assembler) begun(s *assembly) bool {
	parent := a.slots[s.head.ParentSlot]
	switch {
	case !a.Live || s.begin > beginAmid:
		return true
	case s.begin == beginAmid:
		return parent.begun != 0 && parent.begun < s.since
	}
	// All of its content came, or nothing. Each bank writes sysvars, so where all writes are shown, every block has content. What comes of it
	// once it is over is a replay, which ends with the head: until then there may be more.
	hasAll := !s.endAlone || a.Filtered && a.bare[s.head.Hash]
	return s.followed && hasAll && parent.frozen != 0 && parent.frozen <= s.since
}

// parent returns the assembly of the block that another builds on, nil if there is none with a head.
func (a *Assembler) parent(child *assembly) *assembly {
	return newest(a.slots[child.head.ParentSlot].open, child.buildsOn)
}

// seal emits a block and then its status.
func (a *Assembler) seal(ctx context.Context, s *assembly) error {
	whole := a.whole(s)
	a.drop(s)
	a.remember(s)
	a.end(s, sealed)
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
	if err := a.emit(ctx, s.take()); err != nil {
		return err
	}
	if s.claimed == 0 {
		return nil
	}
	return a.emit(ctx, &ledger.SlotStatus{Slot: s.slot, Status: s.claimed, Blockhash: ledger.Some(s.head.Hash)})
}

// missed takes the lowest confirmed block below a slot that still misses transactions. The first time it returns an error, which has the
// caller begin another stream before that slot. If that sends no more, it seals the block with the transactions that came.
func (a *Assembler) missed(ctx context.Context, later ledger.Slot) error {
	var s *assembly
	for other := range a.tries() {
		if other.state == short && other.slot < later && (s == nil || other.slot < s.slot) {
			s = other
		}
	}
	switch {
	case s == nil:
		return nil
	case s.slot == a.asked:
		a.miscounts++
		return a.seal(ctx, s)
	}
	a.asked = s.slot
	return fmt.Errorf("the stream sent %d of the %d transactions of slot %d", len(s.indexes), s.head.Transactions, s.slot)
}
