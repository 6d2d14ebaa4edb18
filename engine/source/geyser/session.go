package geyser

import (
	"context"
	"errors"
	"fmt"
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
	mints     *mints
	backoff   upstream.Backoff // between sessions
	refill    upstream.Backoff // between fills that fail

	forward ledger.Emit    // to the sequencer
	failed  error          // of forward: Run ends
	emitted bool           // something since the newest verdict
	verdict ledger.Verdict // the newest one

	known      []known                 // of each node
	missing    ledger.Opt[ledger.Slot] // up to here blocks are missing
	fillAfter  time.Time               // no fill before
	again      askedAgain              // in this session
	incomplete uint64                  // blocks of which it was told that transactions are missing
	late       uint64                  // writes behind their blocks that were counted
}

// known is what sessions with a node have shown of it.
type known struct {
	wholeData bool // it does not know of slices, or takes few
	replayOff bool // the next session with it asks for no replay: the one before was refused it
	// oneRequest is until when it is not asked again on an open call: it ended one when it was.
	oneRequest time.Time
}

// oneRequestFor is for how long a node is believed to take one request for filters.
const oneRequestFor = 10 * time.Minute

// node returns what is known of the node that is followed.
func (f *follower) node() *known { return &f.known[f.source.node] }

func newFollower(s *Source, emit ledger.Emit) *follower {
	c := &s.config
	f := &follower{
		source: s, config: c, stats: &s.stats, forward: emit, known: make([]known, len(s.nodes)), mints: newMints(c),
		backoff: upstream.Backoff{Min: c.BackoffMin, Max: c.BackoffMax, Random: c.Random},
		refill:  upstream.Backoff{Min: c.BackoffMin, Max: c.BackoffMax, Random: c.Random},
	}
	f.assembler = yellowstone.NewAssembler(f.emit)
	f.assembler.Live = true
	f.assembler.HasTransactions = !c.NoTransactions
	return f
}

// emit passes an event on to the sequencer.
func (f *follower) emit(ctx context.Context, e ledger.Event) error {
	f.emitted = true
	if status, ok := e.(*ledger.SlotStatus); ok && status.Status == ledger.StatusDead && status.Blockhash.Known {
		f.stats.Dead()
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
	for n := before.Placed; n < f.verdict.Placed; n++ {
		f.stats.Sealed(f.verdict.Tip.Slot)
	}
	for n := before.Repeated; n < f.verdict.Repeated; n++ {
		f.stats.Duplicate()
	}
	for n := before.Contradictions; n < f.verdict.Contradictions; n++ {
		f.stats.Failed(upstream.Equivocation)
	}
	for _, b := range f.verdict.NewlyConfirmed {
		f.mints.confirmed(f.mints.look(b))
	}
	f.verdict.NewlyConfirmed = nil // they are large
	return nil
}

// subscription returns what to ask for now: what is not confirmed is shown again.
func (f *follower) subscription() subscription {
	sub := subscription{accounts: f.config.Accounts, sliced: !f.config.WholeData && !f.node().wholeData, noTransactions: f.config.NoTransactions, skipVotes: f.config.SkipVotes}
	switch {
	case f.node().replayOff:
	case f.verdict.Rooted: // a slot that has a block: some servers refuse others (Richat, channel.rs)
		sub.from = ledger.Some(f.verdict.Confirmed.Slot)
	}
	return sub
}

// session follows the node over one connection until something ends it.
func (f *follower) session(ctx context.Context) error {
	if err := f.ask(ctx, true); err != nil {
		return err
	}
	sub := f.subscription()
	if sub.from.Known {
		f.stats.Replayed()
	}
	conn, err := f.source.connect(ctx, sub)
	if err == nil {
		err = f.follow(ctx, conn)
		conn.close()
		if f.again.slot != 0 && time.Since(f.again.at) < f.config.IdleTimeout && refusesRequests(err) {
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

// takesOneRequest reports whether the node is not asked again on an open call.
func (f *follower) takesOneRequest() bool { return time.Now().Before(f.node().oneRequest) }

// askedAgain is a replay that a session asked for on its connection, because a block came in part.
type askedAgain struct {
	slot ledger.Slot // of that block; 0: none was asked for
	at   time.Time
}

// replay has the node show again what came in part, the lowest of some blocks and what follows, and reports whether that
// may still come. Each block is asked for once in a session.
func (f *follower) replay(conn *connection, after, upTo ledger.Slot) bool {
	slot, found := f.assembler.InPart(after, upTo)
	switch {
	case !found || f.node().replayOff || f.takesOneRequest():
		return false
	case slot > f.again.slot:
		sub := f.subscription()
		sub.from = ledger.Some(slot)
		conn.replay(sub)
		f.stats.Replayed()
		f.again = askedAgain{slot, time.Now()}
	}
	return time.Since(f.again.at) < f.config.IdleTimeout
}

// watch says when a connection shows too little.
type watch struct {
	idle, noBlock   time.Duration
	received, shown uint64
	receivedAt      time.Time
	progress        uint64
	progressAt      time.Time
}

// standstill is how many times noBlock a node may show nothing at all and answer pings: its cluster may stand still.
const standstill = 4

// check returns why the session has to end, nil if it has not.
func (w *watch) check(now time.Time, conn *connection, progress uint64) error {
	if n := conn.received.Load(); n != w.received || !conn.waits.Load() {
		w.received, w.receivedAt = n, now
	}
	if progress != w.progress {
		w.progress, w.progressAt, w.shown = progress, now, conn.shown.Load()
	}
	patience := w.noBlock
	if w.shown == conn.shown.Load() {
		patience *= standstill
	}
	switch idle := now.Sub(w.receivedAt); {
	case idle >= w.idle:
		return errStalled
	case idle >= w.idle/2:
		token(conn.pings) // a node whose cluster stands still shows nothing, and answers
	}
	if now.Sub(w.progressAt) >= patience {
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
		case state := <-f.mints.found:
			err = f.emit(ctx, state)
		case now := <-ticker.C:
			if err = w.check(now, conn, f.progress()); err == nil {
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
		for ; f.late < f.assembler.Counts.Late; f.late++ {
			f.stats.Failed(upstream.Garbage)
		}
		if n := f.assembler.Counts.Incomplete; n > f.incomplete {
			f.incomplete = n
			f.config.Logger.Warn("a confirmed block has fewer transactions than its head counts, also when the node was asked again",
				"source", f.source.Info().Name, "slot", uint64(updates[i].Slot), "blocks_so_far", n)
		}
	}
	return f.settle(ctx, conn, before)
}

// settle asks whether something is missing, and does what can be done about it. before is how many blocks had been
// placed when the session began.
func (f *follower) settle(ctx context.Context, conn *connection, before uint64) error {
	if !f.emitted && !f.missing.Known {
		return nil
	}
	if err := f.ask(ctx, false); err != nil {
		return err
	}
	if err := f.verdict.Wrong; err != nil {
		return fmt.Errorf("%w: %w", errWrong, err)
	}
	if !f.verdict.Gap.Known {
		f.repaired()
		return nil
	}
	g := f.verdict.Gap.Value
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
	return f.fill(ctx, g)
}

// repaired notes that nothing is missing any more, unless the session just did not come that far yet.
func (f *follower) repaired() {
	if f.missing.Known && f.verdict.Tip.Slot >= f.missing.Value {
		f.missing = ledger.Opt[ledger.Slot]{}
		f.stats.GapRepaired()
		f.refill.Reset()
	}
}

// fill has what is missing filled. The connection is read meanwhile, as far as the queue goes.
func (f *follower) fill(ctx context.Context, g ledger.Gap) error {
	f.config.Logger.Info("filling a gap", "source", f.source.Info().Name, "after_slot", uint64(g.After.Slot), "up_to_slot", uint64(g.UpTo))
	before := f.verdict.Placed
	err := f.config.Filler.Fill(ctx, g.After.Slot, g.After.Hash, g.UpTo, f.emit)
	if root := f.verdict.Root; errors.Is(err, upstream.ErrOtherChain) && g.After != root && f.failed == nil && ctx.Err() == nil {
		f.config.Logger.Warn("the node that fills gaps has another block than the one that was confirmed here: asking from the final block on",
			"source", f.source.Info().Name, "confirmed_slot", uint64(g.After.Slot), "final_slot", uint64(root.Slot))
		f.stats.Failed(upstream.Equivocation)
		g.After = root
		err = f.config.Filler.Fill(ctx, root.Slot, root.Hash, g.UpTo, f.emit)
	}
	switch {
	case f.failed != nil:
		return f.failed
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		kind, asked := fillFailure(err)
		wait := max(f.refill.Next(), asked)
		f.fillAfter = time.Now().Add(wait)
		f.stats.Failed(kind)
		f.stats.GapStuck(kind)
		f.config.Logger.Warn("a gap cannot be filled yet", "source", f.source.Info().Name, "after_slot", uint64(g.After.Slot),
			"up_to_slot", uint64(g.UpTo), "error", shown(err, f.source.secrets), "again_in", wait)
		return nil
	}
	if err := f.ask(ctx, false); err != nil {
		return err
	}
	if err := f.verdict.Wrong; err != nil {
		return fmt.Errorf("%w: %w", errWrong, err)
	}
	switch rest := f.verdict.Gap; {
	case !rest.Known:
		f.repaired()
	case rest.Value == g, f.verdict.Placed == before:
		f.stats.GapStuck(upstream.WrongParent)
		return errFillOther
	}
	return nil
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
	f.config.Logger.Warn("the session with the node ended", "source", f.source.Info().Name, "node", f.source.nodes[f.source.node], "cause", kind.String(),
		"error", shown(err, f.source.secrets), "last_slot", uint64(f.verdict.Tip.Slot),
		"blocks", n.Sealed, "partial", n.Partial, "late", n.Late, "duplicates", n.Duplicates)
	f.assembler.Reconnected()
}
