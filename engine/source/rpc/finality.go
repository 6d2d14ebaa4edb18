package rpc

import (
	"context"
	"fmt"
	"time"

	"ledgerd/engine/ledger"
)

// finalDepth is how many blocks below the newest that may be final are looked at, where the node
// does not have that one.
const finalDepth = 4

// goOn is a step, if not too many blocks wait to be final.
func (f *follower) goOn(ctx context.Context) (more bool, err error) {
	if len(f.chain) < maxUnfinal {
		return f.step(ctx)
	}
	f.why = &callError{method: "getSlot", cause: notYet, detail: fmt.Errorf("none of the last %d blocks is final", maxUnfinal)}
	return false, f.rest(ctx)
}

// finality asks from time to time what is final, and emits it. A block is final when the node has
// finalized its hash; so is then all that it builds on. It reports whether blocks had to be taken back
// because the node finalized others. Errors are those of emit and ctx.
func (f *follower) finality(ctx context.Context) (rewound bool, err error) {
	if f.upTo > 0 || len(f.chain) < 2 || time.Now().Before(f.nextFinality) {
		return false, nil
	}
	f.nextFinality = time.Now().Add(f.config.FinalityPoll)
	newest, err := f.client.slot(ctx, ledger.Finalized)
	if err != nil {
		return false, ctx.Err()
	}
	candidate := 0
	for candidate+1 < len(f.chain) && f.chain[candidate+1].slot <= newest {
		candidate++
	}
	doubtful := f.chain[candidate]
	final, differs, err := f.finalized(ctx, candidate)
	if err != nil {
		return false, ctx.Err()
	}
	switch {
	case final == candidate:
		f.doubts = 0
	case differs:
		f.doubts = maxDisputes
	default:
		f.doubts++ // the node says that it finalized past a block that it does not have
	}
	if final > 0 {
		at := f.chain[final]
		if err := f.emit(ctx, &ledger.SlotStatus{Slot: at.slot, Status: ledger.StatusFinalized, Blockhash: ledger.Some(at.hash)}); err != nil {
			return false, err
		}
		f.final.Store(uint64(at.slot))
		f.chain = f.chain[:copy(f.chain, f.chain[final:])]
	}
	if f.doubts < maxDisputes || len(f.chain) < 2 {
		return false, nil
	}
	f.doubts = 0
	if !differs && !f.lacks(ctx, doubtful) {
		return false, ctx.Err() // it is not final yet, whatever the node says
	}
	f.rewind(1)
	return true, nil
}

// lacks reports whether the node has no block, or another, in the place of one.
func (f *follower) lacks(ctx context.Context, l link) bool {
	hash, err := f.client.hash(ctx, l.slot, ledger.Confirmed)
	return err == nil && hash != l.hash || err != nil && causeOf(err) == absent && ctx.Err() == nil
}

// finalized returns the newest block of the chain, up to a candidate, whose hash the node has
// finalized, 0 if none of those looked at. It tells whether the node has another in the place of one.
func (f *follower) finalized(ctx context.Context, candidate int) (final int, differs bool, err error) {
	for i := candidate; i > max(candidate-finalDepth, 0); i-- {
		hash, err := f.client.hash(ctx, f.chain[i].slot, ledger.Finalized)
		switch {
		case err != nil && causeOf(err) != absent:
			return 0, false, err
		case err == nil && hash == f.chain[i].hash:
			return i, differs, nil
		}
		differs = differs || err == nil
	}
	return 0, differs, nil
}
