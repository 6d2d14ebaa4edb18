package geyser

import (
	"context"
	"errors"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/upstream"
	"ledgerd/engine/source/yellowstone"
)

// follower is what Run keeps from session to session. Its goroutine is Run's.
type follower struct {
	source    *Source
	config    *Config
	stats     *upstream.Stats
	assembler *yellowstone.Assembler
	chain     *chain
	mints     *mints
	backoff   upstream.Backoff // between sessions
	refill    upstream.Backoff // between fills that fail

	failed error // of emit: Run ends

	wholeData  bool // the node does not know of slices
	replayOff  bool // the next session is not to ask for a replay: it was refused, and a Filler is there
	gapOpen    bool
	fillAfter  time.Time // no fill before
	incomplete uint64    // blocks of which it was told that transactions are missing
	late       uint64    // writes behind their blocks that were counted
}

func newFollower(s *Source, from *ledger.ResumePoint, emit ledger.Emit) *follower {
	c := &s.config
	f := &follower{
		source: s, config: c, stats: &s.stats, wholeData: c.WholeData, mints: newMints(c),
		backoff: upstream.Backoff{Min: c.BackoffMin, Max: c.BackoffMax, Random: c.Random},
		refill:  upstream.Backoff{Min: c.BackoffMin, Max: c.BackoffMax, Random: c.Random},
	}
	f.chain = newChain(from, func(ctx context.Context, e ledger.Event) error {
		if err := emit(ctx, e); err != nil {
			f.failed = err
			return err
		}
		return nil
	}, f.mints, &s.stats, c.WaitingBytes)
	f.assembler = yellowstone.NewAssembler(f.chain.take)
	f.chain.showsElsewhere = f.assembler.ShowsElsewhere
	f.assembler.Live = true
	f.assembler.SomeTransactions = c.SkipVotes
	f.assembler.HasTransactions = !c.NoTransactions && !c.SkipVotes
	return f
}

// subscription returns what to ask for now: what is emitted is not shown again, but for as
// much as it takes to see that the chain goes on.
func (f *follower) subscription() subscription {
	sub := subscription{sliced: !f.wholeData, noTransactions: f.config.NoTransactions, skipVotes: f.config.SkipVotes}
	c := f.chain
	switch {
	case f.replayOff:
		f.replayOff = false
	case c.rooted:
		const overlap = 2
		sub.from = ledger.Some(min(c.newest-min(c.newest, overlap), c.confirmed.slot))
	}
	return sub
}

// session follows the node over one connection until something ends it.
func (f *follower) session(ctx context.Context) error {
	sub := f.subscription()
	if sub.from.Known {
		f.stats.Replayed()
	}
	conn, err := f.source.connect(ctx, sub)
	if err == nil {
		err = f.follow(ctx, conn)
		conn.close()
	}
	if sub.from.Known && f.config.Filler != nil && refusesReplay(err, conn != nil && conn.received.Load() > 0) {
		f.replayOff = true
	}
	return err
}

// watch says when a connection shows too little.
type watch struct {
	idle, noBlock time.Duration
	received      uint64
	receivedAt    time.Time
	progress      uint64
	progressAt    time.Time
}

// check returns why the session has to end, nil if it has not.
func (w *watch) check(now time.Time, conn *connection, progress uint64) error {
	if n := conn.received.Load(); n != w.received || !conn.waits.Load() {
		w.received, w.receivedAt = n, now
	}
	if progress != w.progress {
		w.progress, w.progressAt = progress, now
	}
	switch {
	case now.Sub(w.receivedAt) >= w.idle:
		return errStalled
	case now.Sub(w.progressAt) >= w.noBlock:
		return errNoBlock
	}
	return nil
}

// follow takes what a connection shows.
func (f *follower) follow(ctx context.Context, conn *connection) error {
	now := time.Now()
	w := watch{idle: f.config.IdleTimeout, noBlock: f.config.BlockTimeout, receivedAt: now, progressAt: now}
	ticker := time.NewTicker(f.config.IdleTimeout / 5)
	defer ticker.Stop()
	before := f.chain.emitted
	f.chain.changed = true
	for {
		var err error
		select {
		case <-conn.queue.ready:
			err = f.drain(ctx, conn, before)
		case <-conn.ended:
			// What it sent before it ended is good.
			if err = f.drain(ctx, conn, before); err == nil {
				err = conn.err
			}
		case state := <-f.mints.found:
			err = f.chain.take(ctx, state)
		case now := <-ticker.C:
			if err = w.check(now, conn, f.progress()); err == nil {
				err = f.settle(ctx, before) // a fill may be due
			}
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// progress counts what shows that the stream is more than noise.
func (f *follower) progress() uint64 { return f.assembler.Counts.Sealed + f.assembler.Counts.Startup }

// drain assembles what waits in the queue.
func (f *follower) drain(ctx context.Context, conn *connection, before uint64) error {
	updates, size := conn.queue.take()
	defer conn.queue.done(updates, size)
	for i := range updates {
		if err := f.assembler.Take(ctx, &updates[i]); err != nil {
			return err
		}
		if f.chain.changed {
			if err := f.settle(ctx, before); err != nil {
				return err
			}
		}
		for ; f.late < f.assembler.Counts.Late; f.late++ {
			f.stats.Failed(upstream.Garbage)
		}
		if n := f.assembler.Counts.Incomplete; n > f.incomplete {
			f.incomplete = n
			f.config.Logger.Warn("a confirmed block has fewer transactions than its head counts, also when the node was asked again",
				"source", f.source.Info().Name, "slot", uint64(updates[i].Slot), "blocks_so_far", n)
		}
	}
	return nil
}

// settle looks whether something is missing, and does what can be done about it. before is how many
// blocks were emitted when the session began.
func (f *follower) settle(ctx context.Context, before uint64) error {
	if !f.chain.changed && !f.gapOpen {
		return nil
	}
	f.chain.changed = false
	g, open, err := f.chain.gap(f.assembler.Expects)
	switch {
	case err != nil:
		return err
	case !open:
		if f.gapOpen {
			f.gapOpen = false
			f.stats.GapRepaired()
			f.refill.Reset()
		}
		return nil
	}
	f.stats.GapFound(g.after.slot, g.upTo)
	f.gapOpen = true
	switch {
	case f.chain.emitted > before:
		return errReplay // it was shown up to here: it may be shown again
	case f.config.Filler == nil:
		f.stats.GapStuck(upstream.OutOfRange)
		return errLost
	case !g.confirmed || time.Now().Before(f.fillAfter):
		return nil // a Filler shows what is confirmed
	}
	return f.fill(ctx, g)
}

// fill has what is missing filled. The connection is read meanwhile, as far as the queue goes.
func (f *follower) fill(ctx context.Context, g gap) error {
	f.config.Logger.Info("filling a gap", "source", f.source.Info().Name, "after_slot", uint64(g.after.slot), "up_to_slot", uint64(g.upTo))
	before := f.chain.emitted
	err := f.config.Filler.Fill(ctx, g.after.slot, g.after.hash, g.upTo, f.chain.takeFilled)
	switch {
	case f.failed != nil:
		return f.failed
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errForeign):
		return errFillOther
	case errors.Is(err, errNotDead):
		return err
	case errors.Is(err, upstream.ErrOtherChain) && f.chain.doubt():
		f.config.Logger.Warn("the node that fills gaps has another block than the one that was confirmed here: asking from the final block on",
			"source", f.source.Info().Name, "confirmed_slot", uint64(g.after.slot), "final_slot", uint64(f.chain.root.slot))
		f.stats.Failed(upstream.Equivocation)
		return nil
	case err != nil:
		kind, asked := fillFailure(err)
		wait := max(f.refill.Next(), asked)
		f.fillAfter = time.Now().Add(wait)
		f.stats.Failed(kind)
		f.stats.GapStuck(kind)
		f.config.Logger.Warn("a gap cannot be filled yet", "source", f.source.Info().Name, "after_slot", uint64(g.after.slot),
			"up_to_slot", uint64(g.upTo), "error", shown(err, f.config.Token), "again_in", wait)
		return nil
	}
	f.chain.changed = false
	rest, open, err := f.chain.gap(f.assembler.Expects)
	switch {
	case err != nil:
		return err
	case open && rest == g, open && f.chain.emitted == before:
		f.stats.GapStuck(upstream.WrongParent)
		return errFillOther
	case !open:
		f.gapOpen = false
		f.stats.GapRepaired()
		f.refill.Reset()
	}
	f.chain.changed = open
	return nil
}

// over notes what ended a session, and makes ready for the next.
func (f *follower) over(err error) {
	kind := kindOf(err)
	f.stats.Disconnected(kind)
	if errors.Is(err, yellowstone.ErrNotSliced) {
		f.wholeData = true
	}
	if kind == upstream.WrongParent && !errors.Is(err, errReplay) && !errors.Is(err, errNotDead) {
		f.stats.GapStuck(kind)
	}
	n := f.assembler.Counts
	f.config.Logger.Warn("the session with the node ended", "source", f.source.Info().Name, "cause", kind.String(),
		"error", shown(err, f.config.Token), "last_slot", uint64(f.chain.newest),
		"blocks", n.Sealed, "partial", n.Partial, "late", n.Late, "duplicates", n.Duplicates)
	f.chain.clearWaiting()
	f.assembler.Reconnected()
}
