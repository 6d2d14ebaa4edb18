package rpc

import (
	"context"
	"fmt"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/upstream"
)

// maxListed bounds the slots listed at once, so that the longest list stays within maxSmall.
const maxListed = 1 << 16

// step lists what comes next and emits it. It reports whether there may be more at once.
func (f *follower) step(ctx context.Context) (more bool, err error) {
	if f.rootless && !f.config.From.Known {
		if known, err := f.root(ctx); !known {
			return true, err
		}
	}
	from := max(f.last().slot, f.emptyUpTo)
	to := from + f.span
	if f.upTo > 0 {
		to = min(from+maxListed, f.upTo)
	}
	slots, err := f.client.slots(ctx, from+1, to, ledger.Confirmed)
	if err != nil {
		return true, f.rest(ctx, err)
	}
	switch {
	case len(slots) > 0:
	case to < f.upTo:
		f.emptyUpTo, f.why = to, &callError{method: "getBlocks", cause: absent}
		return true, nil
	case f.upTo > 0:
		slots = []ledger.Slot{f.upTo} // which there is: its parents tell what is before it
	default:
		return f.nothing(ctx, to)
	}
	newest := slots[len(slots)-1]
	f.tip = max(f.tip, newest)
	f.stats.Saw(newest)
	behind := f.upTo == 0 && to-newest < f.span/4
	f.span = usualSpan
	if f.rootless && !f.config.From.Known {
		slots = slots[len(slots)-1:]
	} else if f.upTo == 0 && len(slots) > int(f.span) {
		slots, behind = slots[:f.span], true
	}
	if behind || f.tip > newest {
		f.look(ctx)
	}
	done, err := f.walk(ctx, slots, !behind)
	f.emptyUpTo = 0
	return behind || !done, err
}

// root has a follower that holds nothing begin a little below the node's newest slot. It is not known where
// the node cannot be asked; then it waited.
func (f *follower) root(ctx context.Context) (known bool, err error) {
	newest, err := f.client.slot(ctx, ledger.Confirmed)
	if err != nil {
		return false, f.rest(ctx, err)
	}
	f.heard(newest)
	f.chain[0].slot = max(newest, rootSearch) - rootSearch
	return true, nil
}

// nothing decides what it means that no block is listed up to a slot.
func (f *follower) nothing(ctx context.Context, to ledger.Slot) (more bool, err error) {
	head, known := f.look(ctx)
	last := f.last().slot
	switch {
	case !known:
		return false, nil
	case head > last:
		return true, f.unlisted(ctx, to, head)
	case head+rootSearch < last:
		f.stats.Failed(upstream.Unavailable)
		detail := fmt.Errorf("it is at slot %d, and slot %d is held here", head, last)
		return true, f.rest(ctx, &callError{method: "getSlot", cause: behind, detail: detail})
	}
	f.works()
	return false, nil
}

// unlisted decides what it means that the node tells of a slot past the newest block and lists no block up to
// another. Mostly the block has come since. Else the node does not keep what comes next, or no block was produced for so
// long, or the list is wrong, or the slot is: then it is looked further up, and the next block that is found tells.
func (f *follower) unlisted(ctx context.Context, to, head ledger.Slot) error {
	why := &callError{method: "getBlocks", cause: absent, detail: fmt.Errorf("none up to slot %d, and it is at slot %d", min(to, head), head)}
	if f.failures > 0 { // not for the first time in a row
		f.stats.Failed(upstream.Unavailable)
	}
	if head <= to {
		f.emptyUpTo, f.span = 0, usualSpan
		return f.rest(ctx, why)
	}
	kept := f.firstKept(ctx)
	if kept > to && kept <= head {
		if f.rootless && f.failures == 0 {
			f.config.Logger.Warn("the node does not keep what comes first: it begins later", "after_slot", uint64(f.last().slot), "slot", uint64(kept))
		}
		f.emptyUpTo = kept - 1
		return ctx.Err()
	}
	f.emptyUpTo, f.span = to, min(2*f.span, maxListed)
	return f.rest(ctx, why)
}

// firstKept returns the first slot whose block the node keeps, 0 where it does not say.
func (f *follower) firstKept(ctx context.Context) ledger.Slot {
	slot, _ := f.client.oneSlot(ctx, "getFirstAvailableBlock")
	return slot
}

// look asks for the node's newest slot, but not too often.
func (f *follower) look(ctx context.Context) (ledger.Slot, bool) {
	if time.Now().Before(f.nextHead) {
		return 0, false
	}
	f.nextHead = time.Now().Add(2 * f.config.FinalityPoll)
	head, err := f.client.slot(ctx, ledger.Confirmed)
	if err != nil {
		return 0, false
	}
	f.heard(head)
	return head, true
}

// heard notes what the node says is its newest slot. Behind a balancer one node is a little ahead of another. But
// where it goes on to tell of one much lower than before, that is believed: what it told before was wrong, or it
// has begun again further down.
func (f *follower) heard(head ledger.Slot) {
	if head+rootSearch >= f.tip {
		f.tip, f.lower = max(f.tip, head), 0
		f.stats.Saw(head)
		return
	}
	if f.lower++; f.lower < patience {
		return
	}
	why := garbage
	if f.tip <= f.last().slot+rootSearch { // its blocks came
		why = behind
	}
	f.config.Logger.Warn("the node's newest slot is lower than it said", "said", uint64(f.tip), "slot", uint64(head))
	f.stats.Failed(causes[why].kind)
	f.stats.SlotRegressed(head)
	f.tip, f.lower = head, 0
}
