package rpc

import (
	"context"
	"time"

	"ledgerd/engine/ledger"
)

// finality asks from time to time what is final, and emits it. A block is final when the node has
// finalized its hash; so is then all that it builds on. It reports whether blocks had to be taken back
// because the node finalized another in the place of one. Where the node does not show what it calls final, further and further below is looked, so
// that a node that shows final blocks late is believed in a few calls. That it shows none there proves nothing: what builds on the
// node's branch will not build on ours. Errors are those of emit and ctx.
func (f *follower) finality(ctx context.Context) (rewound bool, err error) {
	if f.upTo > 0 || len(f.chain) < 2 || time.Now().Before(f.nextFinality) {
		return false, nil
	}
	f.nextFinality = time.Now().Add(finalityPoll)
	newest, err := f.client.slot(ctx, ledger.Finalized)
	if err != nil {
		return false, ctx.Err()
	}
	candidate := len(f.chain) - 1
	for candidate > 0 && f.chain[candidate].Slot > newest {
		candidate--
	}
	for i, below := candidate, 1; i > 0; i, below = i-below, 2*below {
		at := f.chain[i]
		shown, known := f.shown(ctx, at.Slot, ledger.Finalized)
		switch {
		case !known:
			return false, ctx.Err()
		case shown == ledger.Some(at.Hash):
			if err := f.emit(ctx, &ledger.SlotStatus{Slot: at.Slot, Status: ledger.StatusFinalized, Blockhash: shown}); err != nil {
				return false, err
			}
			f.final.Store(uint64(at.Slot))
			f.chain = f.chain[:copy(f.chain, f.chain[i:])]
			return false, nil
		case shown.Known:
			f.rewind()
			return true, nil
		}
	}
	return false, nil
}

// shown returns the hash of the block that the node shows in a slot, none where it shows no block there, or none that is final
// yet. It is not known where the node cannot tell.
func (f *follower) shown(ctx context.Context, slot ledger.Slot, level ledger.Commitment) (hash ledger.Opt[ledger.Hash], known bool) {
	h, err := f.client.hash(ctx, slot, level)
	if err != nil {
		cause := causeOf(err)
		return hash, cause == absent || cause == pruned || cause == notYet && level == ledger.Finalized
	}
	return ledger.Some(h), true
}
