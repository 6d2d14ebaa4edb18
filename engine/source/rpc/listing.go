package rpc

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/upstream"
)

// maxListed is how many blocks are listed at once.
const maxListed = 256

// step lists what comes next and emits it. It reports whether there may be more at once.
func (f *follower) step(ctx context.Context) (more bool, err error) {
	if f.rootless && !f.config.From.Known {
		if known, err := f.root(ctx); !known {
			return true, err
		}
	}
	slots, err := f.client.slots(ctx, f.last().Slot+1, maxListed, ledger.Confirmed)
	if err != nil {
		return true, f.rest(ctx, err)
	}
	behind := len(slots) == maxListed
	switch {
	case f.upTo > 0:
		if past, _ := slices.BinarySearch(slots, f.upTo+1); past > 0 {
			slots = slots[:past]
		} else {
			slots = []ledger.Slot{f.upTo} // which there is: its parents tell what is before it
		}
	case len(slots) == 0:
		return f.nothing(ctx)
	}
	newest := slots[len(slots)-1]
	f.tip = max(f.tip, newest)
	f.stats.Saw(newest)
	if f.rootless {
		if slots, err = f.begin(ctx, slots); err != nil {
			return false, err
		}
	}
	if f.upTo == 0 && (behind || f.tip > newest) {
		f.look(ctx)
	}
	done, err := f.walk(ctx, slots, !behind)
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
	f.chain[0].Slot = max(newest, rootSearch) - rootSearch
	return true, nil
}

// begin returns which of the slots that are listed a follower that holds nothing begins with.
func (f *follower) begin(ctx context.Context, slots []ledger.Slot) ([]ledger.Slot, error) {
	if !f.config.From.Known {
		return slots[len(slots)-1:], nil
	}
	if kept := f.firstKept(ctx); kept > f.last().Slot+1 && f.failures == 0 {
		f.config.Logger.Warn("the node does not keep what comes first: it begins later", "after_slot", uint64(f.last().Slot), "slot", uint64(kept))
	}
	return slots, ctx.Err()
}

// nothing decides what it means that no block is listed after the newest one. Where the node tells of a slot past that, mostly
// the block has come since; else the list is wrong, or the slot is.
func (f *follower) nothing(ctx context.Context) (more bool, err error) {
	head, known := f.look(ctx)
	last := f.last().Slot
	switch {
	case !known:
		return false, nil
	case head > last:
		if f.failures > 0 { // not for the first time in a row
			f.stats.Failed(upstream.Unavailable)
		}
		detail := fmt.Errorf("none after slot %d, and it is at slot %d", last, head)
		return true, f.rest(ctx, &callError{method: listMethod, cause: absent, detail: detail})
	case head+rootSearch < last && !f.rootless:
		f.stats.Failed(upstream.Unavailable)
		detail := fmt.Errorf("it is at slot %d, and slot %d is held here", head, last)
		return true, f.rest(ctx, &callError{method: "getSlot", cause: behind, detail: detail})
	}
	f.works()
	return false, nil
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
	f.nextHead = time.Now().Add(2 * finalityPoll)
	head, err := f.client.slot(ctx, ledger.Confirmed)
	if err != nil {
		return 0, false
	}
	f.heard(head)
	return head, true
}

// heard notes what the node says is its newest slot. Behind a balancer one node is a little ahead of another. Where it is
// much lower than before, what it told before was wrong, or it has begun again further down.
func (f *follower) heard(head ledger.Slot) {
	if head+rootSearch >= f.tip {
		f.tip = max(f.tip, head)
		f.stats.Saw(head)
		return
	}
	why := garbage
	if !f.rootless && f.tip <= f.last().Slot+rootSearch { // its blocks came
		why = behind
	}
	f.config.Logger.Warn("the node's newest slot is lower than it said", "said", uint64(f.tip), "slot", uint64(head))
	f.stats.Failed(causes[why].kind)
	f.stats.SlotRegressed(head)
	f.tip = head
}
