package file

import (
	"context"

	"ledgerd/engine/ledger"
)

// sink hands events to the sequencer, without those that a resumed run must not repeat.
type sink struct {
	emit ledger.Emit
	from *ledger.ResumePoint // nil: everything passes

	passed        bool // a block at or past the resume point was seen
	sawBlock      bool
	basesHeldBack int
	failed        error // what emit returned; nothing is emitted after it
}

// put emits e, or leaves it out on a resumed run as the package comment says.
func (k *sink) put(ctx context.Context, e ledger.Event) error {
	if k.failed != nil {
		return k.failed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	switch e := e.(type) {
	case *ledger.Block:
		k.sawBlock = true
		if k.from != nil {
			k.passed = k.passed || e.Slot >= k.from.Slot
			if e.Slot < k.from.Slot {
				return nil
			}
		}
	case *ledger.BaseState:
		if k.from != nil && !k.passed {
			k.basesHeldBack++
			return nil
		}
	}
	k.failed = k.emit(ctx, e)
	return k.failed
}
