package geyser

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/upstream"
)

// settle asks whether something is missing, and does what can be done about it, until nothing more can be. before is how many
// blocks had been placed when the session began.
func (f *follower) settle(ctx context.Context, conn *connection, before uint64) error {
	for filled := (ledger.Gap{}); f.emitted || f.missing.Known; {
		placed := f.verdict.Placed
		if err := f.ask(ctx, false); err != nil {
			return err
		}
		if err := f.verdict.Wrong; err != nil {
			return fmt.Errorf("%w: %w", errWrong, err)
		}
		g := f.verdict.Gap.Value
		if !f.verdict.Gap.Known {
			f.repaired()
			return nil
		}
		if filled != (ledger.Gap{}) && (filled == g || f.verdict.Placed == placed) {
			f.stats.GapStuck(upstream.WrongParent)
			return errFillOther
		}
		f.stats.GapFound(g.After.Slot, g.UpTo)
		f.missing = ledger.Some(g.UpTo)
		switch {
		case f.replay(conn, g.After.Slot, g.UpTo):
			return nil
		case f.verdict.Placed > before && f.takesOneRequest() && f.config.Filler == nil:
			f.stats.GapStuck(upstream.Refused) // each session begins in the middle of a block
			return errReplay
		case f.verdict.Placed > before && !f.takesOneRequest():
			return errReplay // it was shown up to here: it may be shown again
		case f.config.Filler == nil:
			f.stats.GapStuck(upstream.OutOfRange)
			return errLost
		case !g.Confirmed || time.Now().Before(f.fillAfter):
			return nil // a Filler shows what is confirmed
		}
		if isFilled, err := f.fill(ctx, g); !isFilled {
			return err
		}
		filled = g
	}
	return nil
}

// repaired notes that nothing is missing any more, unless the session just did not come that far yet.
func (f *follower) repaired() {
	if f.missing.Known && f.verdict.Tip.Slot >= f.missing.Value {
		f.missing = ledger.Opt[ledger.Slot]{}
		f.stats.GapRepaired()
		f.refill.Reset()
	}
}

// fill has what is missing filled, and reports whether it was. The connection is read meanwhile, as far as the queue goes.
func (f *follower) fill(ctx context.Context, g ledger.Gap) (isFilled bool, err error) {
	name, filler := f.source.Info().Name, f.config.Filler
	f.config.Logger.Info("filling a gap", "source", name, "after_slot", uint64(g.After.Slot), "up_to_slot", uint64(g.UpTo))
	err = filler.Fill(ctx, g.After.Slot, g.After.Hash, g.UpTo, f.assembler.Fill)
	kind, asked := fillFailure(err)
	if root := f.verdict.Root; err != nil && kind == upstream.WrongParent && g.After != root && f.failed == nil && ctx.Err() == nil {
		f.config.Logger.Warn("the node that fills gaps has another block than the one that was confirmed here: asking from the final block on",
			"source", name, "confirmed_slot", uint64(g.After.Slot), "final_slot", uint64(root.Slot))
		f.stats.Failed(upstream.Equivocation)
		err = filler.Fill(ctx, root.Slot, root.Hash, g.UpTo, f.assembler.Fill)
		kind, asked = fillFailure(err)
	}
	if err == nil || f.failed != nil || ctx.Err() != nil {
		return err == nil, cmp.Or(f.failed, ctx.Err())
	}
	wait := max(f.refill.Next(), asked)
	f.fillAfter = time.Now().Add(wait)
	f.stats.Failed(kind)
	f.stats.GapStuck(kind)
	f.config.Logger.Warn("a gap cannot be filled yet", "source", name, "after_slot", uint64(g.After.Slot),
		"up_to_slot", uint64(g.UpTo), "error", shown(err, f.source.secrets), "again_in", wait)
	return false, nil
}
