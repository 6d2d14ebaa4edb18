package rpc

import (
	"context"
	"slices"
	"time"

	"ledgerd/engine/ledger"
)

// maxListed is how many blocks are listed at once.
const maxListed = 256

// step lists what comes next and emits it. It reports whether there may be more at once.
func (f *follower) step(ctx context.Context) (more bool, err error) {
	if err := f.look(ctx); err != nil {
		return true, f.rest(ctx, err)
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
		f.works()
		return false, nil
	case f.rootless:
		slots = f.begin(ctx, slots)
	}
	f.stats.Saw(slots[len(slots)-1])
	done, err := f.walk(ctx, slots, !behind)
	return behind || !done, err
}

// look asks for the node's newest slot, but not too often. A follower that holds nothing begins a little below it, and cannot without it;
// else it is told to the figures alone. The node may be behind itself, or have begun again further down.
func (f *follower) look(ctx context.Context) error {
	if f.upTo > 0 || time.Now().Before(f.nextHead) {
		return nil
	}
	needed := f.rootless && !f.config.From.Known
	head, err := f.client.slot(ctx, ledger.Confirmed)
	switch {
	case err != nil && needed:
		return err
	case err != nil:
		return nil
	case needed:
		f.chain[0].Slot = max(head, rootSearch) - rootSearch
	}
	f.nextHead = time.Now().Add(2 * finalityPoll)
	f.stats.At(head)
	return nil
}

// begin returns which of the slots that are listed a follower that holds nothing begins with.
func (f *follower) begin(ctx context.Context, slots []ledger.Slot) []ledger.Slot {
	if !f.config.From.Known {
		return slots[len(slots)-1:]
	}
	if kept := f.firstKept(ctx); kept > f.last().Slot+1 && f.failures == 0 {
		f.config.Logger.Warn("the node does not keep what comes first: it begins later", "after_slot", uint64(f.last().Slot), "slot", uint64(kept))
	}
	return slots
}

// firstKept returns the first slot whose block the node keeps, 0 where it does not say.
func (f *follower) firstKept(ctx context.Context) ledger.Slot {
	slot, _ := f.client.oneSlot(ctx, "getFirstAvailableBlock")
	return slot
}
