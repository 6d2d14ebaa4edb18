package geyser

import (
	"context"
	"errors"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/wait"
	"ledgerd/engine/source/upstream"
	"ledgerd/engine/source/yellowstone"
)

// follower is what Run keeps from session to session. Its goroutine is Run's.
type follower struct {
	source    *Source
	config    *Config
	stats     *upstream.Stats
	assembler *yellowstone.Assembler
	backoff   wait.Backoff // between sessions
	refill    wait.Backoff // between fills that fail

	forward ledger.Emit    // to the sequencer
	failed  error          // of forward: Run ends
	emitted bool           // something since the newest verdict
	verdict ledger.Verdict // the newest one

	known     []known                 // of each node
	missing   ledger.Opt[ledger.Slot] // up to here blocks are missing
	fillAfter time.Time               // no fill before
	again     askedAgain              // in this session
	counted   yellowstone.Counts      // those of the assembler that the figures show
}

// known is what sessions with a node have shown of it.
type known struct {
	wholeData bool // it does not know of slices, or takes few
	replayOff bool // the next session with it asks for no replay: the one before was refused it
	// oneRequest is until when it is not asked again on an open call: it ended one when it was.
	oneRequest time.Time
}

// node returns what is known of the node that is followed.
func (f *follower) node() *known { return &f.known[f.source.node] }

func newFollower(s *Source, emit ledger.Emit) *follower {
	c := &s.config
	pause := wait.Backoff{Min: backoffMin, Max: backoffMax, Random: c.Random}
	f := &follower{
		source: s, config: c, stats: &s.stats, forward: emit, known: make([]known, len(c.Addresses)),
		backoff: pause, refill: pause,
	}
	f.assembler = yellowstone.NewAssembler(f.emit)
	f.assembler.Live = true
	f.assembler.HasTransactions = !c.NoTransactions
	f.assembler.Filtered = len(c.Accounts) > 0
	return f
}

// emit passes an event on to the sequencer.
func (f *follower) emit(ctx context.Context, e ledger.Event) error {
	f.emitted = true
	if status, ok := e.(*ledger.SlotStatus); ok && status.Status == ledger.StatusDead && status.Blockhash.Known {
		f.stats.Count(func(n *upstream.Snapshot) { n.Dead++ })
	}
	f.failed = f.forward(ctx, e)
	return f.failed
}

// ask asks the sequencer what it made of what was emitted. With restart a session begins.
func (f *follower) ask(ctx context.Context, restart bool) error {
	answer := make(chan ledger.Verdict, 1)
	if err := f.emit(ctx, &ledger.Question{Shown: f.assembler, Restart: restart, Answer: answer}); err != nil {
		return err
	}
	before := f.verdict
	select {
	case f.verdict = <-answer:
	case <-ctx.Done():
		return ctx.Err()
	}
	f.emitted = false
	if placed := f.verdict.Placed - before.Placed; placed > 0 {
		f.stats.Sealed(f.verdict.Tip.Slot, placed)
	}
	counts, counted := f.assembler.Counts, f.counted
	f.counted = counts
	f.stats.Count(func(n *upstream.Snapshot) {
		n.Errors[upstream.Garbage] += counts.Late - counted.Late + counts.Incomplete - counted.Incomplete
		n.Errors[upstream.TooLarge] += counts.Lost - counted.Lost
		n.Duplicates += f.verdict.Repeated - before.Repeated
		n.Errors[upstream.Equivocation] += f.verdict.Contradictions - before.Contradictions
	})
	return nil
}

// session follows the node over one connection until something ends it.
func (f *follower) session(ctx context.Context) error {
	if err := f.ask(ctx, true); err != nil {
		return err
	}
	sub := f.subscription()
	if sub.from.Known {
		f.stats.Count(func(n *upstream.Snapshot) { n.Replays++ })
	}
	conn, err := f.source.connect(ctx, sub)
	if err == nil {
		err = f.follow(ctx, conn)
		conn.close()
		if f.again.slot != 0 && time.Since(f.again.at) < idleTimeout && refusesRequests(err) {
			f.node().oneRequest = time.Now().Add(oneRequestFor)
		}
	}
	sure, maybe := refusesReplay(err, conn != nil && conn.shown.Load() > 0)
	f.node().replayOff = !f.node().replayOff && (sure || maybe && sub.from.Known && f.config.Filler != nil)
	if refusesSlices(err) && sub.sliced {
		f.node().wholeData = true
		f.config.Logger.Warn("the node does not send so many slices of data: it is asked for whole data, which is many times the bandwidth", "source", f.source.Info().Name)
	}
	return err
}

// follow takes what a connection shows.
func (f *follower) follow(ctx context.Context, conn *connection) error {
	now := time.Now()
	w := watch{receivedAt: now, progressAt: now}
	ticker := time.NewTicker(idleTimeout / 5)
	defer ticker.Stop()
	before := f.verdict.Placed
	f.again = askedAgain{}
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
		case now := <-ticker.C:
			if err = w.check(now, conn, f.assembler.Counts.Sealed); err == nil {
				err = f.settle(ctx, conn, before) // a fill may be due
			}
			if f.verdict.Rooted { // also what nothing builds on yet
				f.replay(conn, f.verdict.Tip.Slot, ledger.MaxSlot)
			}
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// drain assembles what waits in the queue.
func (f *follower) drain(ctx context.Context, conn *connection, before uint64) error {
	updates, size := conn.queue.take()
	defer conn.queue.done(updates, size)
	for i := range updates {
		if err := f.assembler.Take(ctx, &updates[i]); err != nil {
			return err
		}
	}
	return f.settle(ctx, conn, before)
}

// over notes what ended a session, and makes ready for the next.
func (f *follower) over(err error) {
	kind := kindOf(err)
	f.stats.Disconnected(kind)
	if errors.Is(err, yellowstone.ErrNotSliced) {
		f.node().wholeData = true
	}
	if kind == upstream.WrongParent && !errors.Is(err, errReplay) {
		f.stats.GapStuck(kind)
	}
	n := f.assembler.Counts
	f.config.Logger.Warn("the session with the node ended", "source", f.source.Info().Name, "node", f.config.Addresses[f.source.node], "cause", kind.String(),
		"error", shown(err, f.source.secrets), "last_slot", uint64(f.verdict.Tip.Slot),
		"blocks", n.Sealed, "short", n.Incomplete, "partial", n.Partial, "late", n.Late, "lost", n.Lost, "duplicates", n.Duplicates)
	f.assembler.Reconnected()
}
