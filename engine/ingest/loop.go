package ingest

import (
	"context"
	"errors"
	"sync"
	"time"

	"ledgerd/engine/chain"
	"ledgerd/engine/datadir"
	"ledgerd/engine/fill"
	"ledgerd/engine/ledger"
	"ledgerd/engine/sequencer"
)

// BatchEvents is how many events may share one commit, and batchBytes about how much memory they may take; blocks of accounts with
// data reach batchBytes first. A batch of that size, encoded, fits into the buffer that the log keeps: growing a buffer for every
// commit took a tenth of the work of such blocks. Two batches are under way: one is being committed, one is being applied.
const BatchEvents, batchBytes = 32, 24 << 20

// loop is the goroutine of the sequencer: no other touches its fields, but for the channels.
type loop struct {
	writer    *Writer
	seq       *sequencer.Sequencer
	info      ledger.SourceInfo
	snapshots *snapshotter

	batches, done chan *batch // to the committer, and back

	feed  chan ledger.Event // from the source; closed at the end of its input
	calls chan call         // of the feeder while it follows the shared log

	busy       bool      // the committer has a batch
	failed     bool      // a batch failed: the committer gets no other, and later records are never published
	events     int       // taken for the next batch
	bytes      int       // that these take
	receivedAt time.Time // when the first of these was taken
}

// call is a function that the loop calls between two events.
type call struct {
	do   func() error
	done chan error
}

// publishRecovered publishes the state that was recovered, if queries may be answered from it. A node with a source needs a
// block or an import for that. A node of a cluster needs a block whose levels were published together before.
func (l *loop) publishRecovered() {
	c := l.seq.Chain()
	shows := l.writer.Source == nil || c.Tip != nil
	if l.writer.Shared != nil {
		shows = c.Tip != nil && !c.Tip.Base && !c.Finalized.Provisional
	}
	if shows {
		l.writer.Board.Publish(&ledger.Publication{Head: l.seq.Head()})
	}
	if l.writer.Source == nil && l.writer.Shared == nil {
		l.writer.Board.Ready.Store(true)
	}
	if shows || c.Tip == nil {
		l.writer.Board.Recovered.Store(true)
	}
}

// run takes events and calls, passes their records to the committer, folds, and begins snapshots. It returns when ctx
// ends or ingest fails in a way that ends the node. When ingest stops for good it calls stopFeeding.
func (l *loop) run(ctx context.Context, stopFeeding func()) error {
	var committing sync.WaitGroup
	committing.Go(func() {
		for b := range l.batches {
			b.err = l.writer.commit(ctx, b)
			l.done <- b
		}
	})
	defer committing.Wait()
	defer close(l.batches)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	in := inputs{events: l.feed, calls: l.calls, fenced: l.writer.Board.Fenced(), logFailed: l.writer.wal.Failed()}
	for {
		timer.Reset(l.nextWork(time.Now()))
		err := l.next(ctx, &in, timer.C)
		if err == nil {
			err = l.doDue(ctx)
		}
		if err == nil {
			continue
		}
		// The events before the failure are valid, so they are committed.
		if commitErr := l.flush(); commitErr != nil {
			err = commitErr
		}
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil // uncommitted records were never visible
		}
		if !l.keepsServing(err) {
			return err
		}
		in.events, in.calls = nil, nil
		stopFeeding()
		l.writer.resign()
	}
}

// inputs are the channels that the loop waits for; one is nil if the loop no longer waits for it.
type inputs struct {
	events    <-chan ledger.Event
	calls     <-chan call
	logFailed <-chan struct{} // a background sync failed
	fenced    <-chan struct{} // the check of a snapshot failed
}

// next waits for one thing to happen and deals with it.
func (l *loop) next(ctx context.Context, in *inputs, due <-chan time.Time) error {
	events, calls, answers := in.events, in.calls, l.writer.Filler.Answers()
	if l.isFull() {
		events, calls, answers = nil, nil, nil // the next batch is full, and the one before is not committed
	}
	select {
	case ev, ok := <-events:
		switch {
		case ok:
			return l.take(ev)
		case ctx.Err() != nil:
			return ctx.Err()
		}
		in.events = nil
		return l.endInput()
	case c := <-calls:
		err := c.do()
		c.done <- err
		return err
	case a := <-answers:
		return l.learn(a)
	case b := <-l.done:
		return l.batchDone(b)
	case <-due:
	case <-l.snapshots.ended:
	case <-in.logFailed:
		in.logFailed = nil
		return diskFailed(l.seq.Chain().TipSlot(), l.writer.wal.Err())
	case <-in.fenced:
		in.fenced = nil
		return l.writer.Board.FenceError()
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// doDue does what is due between two steps: it hands a batch to the committer, folds, and begins a snapshot.
func (l *loop) doDue(ctx context.Context) error {
	if err := l.handOver(); err != nil {
		return err
	}
	now := time.Now()
	l.seq.FoldDue(now)
	if !l.snapshots.isDue(now) {
		return nil
	}
	if err := l.flush(); err != nil { // a snapshot has only visible state
		return err
	}
	l.snapshots.begin(ctx, false)
	return nil
}

// nextWork returns the time until a fold or a snapshot is due.
func (l *loop) nextWork(now time.Time) time.Duration {
	wait := time.Hour
	if at, ok := l.seq.NextFold(); ok {
		wait = min(wait, at.Sub(now))
	}
	if l.writer.SnapshotInterval > 0 && l.snapshots.possible() {
		wait = min(wait, max(l.snapshots.due.Sub(now), 0))
	}
	return wait
}

// take handles ev and the events that wait already, up to the size of a batch.
func (l *loop) take(ev ledger.Event) error {
	if l.receivedAt.IsZero() {
		l.receivedAt = time.Now()
	}
	err := l.handle(ev)
	for err == nil && !l.isFull() && len(l.feed) > 0 {
		err = l.handle(<-l.feed)
	}
	return err
}

func (l *loop) handle(ev ledger.Event) error {
	l.events++
	l.bytes += ev.SizeBytes()
	return l.seq.Handle(ev)
}

// isFull reports whether the next batch takes no more events. A follower takes none while a batch waits for a disk that is full,
// stalls, or opens no file: otherwise it would only apply what the shared log holds, would count as holding it, and could become
// the writer. It still takes a commit that arrives as the wait begins, so it may hold the whole log nevertheless; then the call of
// lead waits, too, and the node gives way.
func (l *loop) isFull() bool {
	waits := l.busy && l.writer.short.Load() != nil && !l.writer.Writes()
	return l.events >= BatchEvents || l.bytes >= batchBytes || waits
}

// learn applies fetched accounts as base state. It refuses them while ingest is stopped or paused.
func (l *loop) learn(a *fill.Answer) error {
	if l.writer.halted() || l.failed || !l.seq.MayLearn() {
		a.Refuse()
		return nil
	}
	var err error
	if base := l.writer.Filler.Learn(a); base != nil {
		err = l.seq.Learn(base)
		l.events++
		l.bytes += base.SizeBytes()
	}
	a.Done(l.seq.Version())
	return err
}

// endInput finishes a finite input: it commits everything and publishes a head even if there was no event.
func (l *loop) endInput() error {
	if l.writer.Source == nil {
		return nil
	}
	err := l.seq.EndOfInput()
	l.events++ // the end of input may have produced records
	if err == nil {
		err = l.flush()
	}
	if err != nil {
		return err
	}
	h := l.seq.Head()
	if l.writer.Board.Head() == nil { // there was no event
		l.writer.Board.Publish(&ledger.Publication{Head: h})
	}
	l.writer.Board.Ready.Store(true)
	tip := h.Tip(ledger.Processed)
	l.writer.Logger.Info("end of input", "source", l.info.Name, "slot", tip.Slot, "seq", tip.Seq, "state_hash", h.StateHash.String())
	return nil
}

// handOver gives the committer the next batch, unless it still has one.
func (l *loop) handOver() error {
	if l.busy || l.failed || l.events == 0 {
		return nil
	}
	sealed, err := l.seq.Seal()
	if err != nil {
		l.failed = true
		return err
	}
	l.writer.paused.Store(l.seq.Paused())
	b := &batch{Batch: sealed, receivedAt: l.receivedAt}
	l.busy, l.events, l.bytes, l.receivedAt = true, 0, 0, time.Time{}
	l.batches <- b
	return nil
}

// batchDone processes the result of a batch.
func (l *loop) batchDone(b *batch) error {
	l.busy = false
	if b.err != nil {
		l.failed = true
		return b.err
	}
	l.seq.Shown(b.Batch)
	return nil
}

// flush waits until everything applied is visible, or returns why it never will be. After a batch
// failed it returns nil at once: ingest is frozen then.
func (l *loop) flush() error {
	for {
		if err := l.handOver(); err != nil || !l.busy {
			return err
		}
		if err := l.batchDone(<-l.done); err != nil {
			return err
		}
	}
}

// replay applies a commit of the shared log. If that leads to another state than the commit states, the node
// fences itself off. A part of a commit never becomes visible.
func (l *loop) replay(commit []*ledger.Record) error {
	err := l.seq.Follow(commit)
	if err == nil {
		l.events += len(commit)
		for _, r := range commit {
			if r.Block != nil {
				l.bytes += r.Block.SizeBytes()
			}
			if r.Base != nil {
				l.bytes += r.Base.SizeBytes()
			}
		}
		return nil
	}
	l.failed = true
	if errors.Is(err, ledger.ErrCorrupt) {
		l.writer.Fence(heldDiffers, err)
	}
	return err
}

// keepsServing reports whether reads go on after a failure of ingest, at the slot where ingest stopped for good: after one of a
// disk or a shared log, a refused rollback, and a contradiction of a live source. A finite source that contradicts itself, the
// root of another ledger, and another writer of the shared log end the node.
func (l *loop) keepsServing(err error) bool {
	var stop *stopError
	var refusal *chain.RefusedError
	switch {
	case errors.Is(err, ledger.ErrDeposed):
		return false
	case l.writer.halted():
		return true // the first reason is kept
	case errors.Is(err, datadir.ErrOtherLedger):
		return false
	case errors.As(err, &stop):
	case errors.As(err, &refusal) || l.info.Live && l.writer.Writes():
		stop = &stopError{why: "ingest stopped: " + err.Error(), err: err}
	default:
		return false
	}
	l.writer.stopped.Store(stop)
	l.writer.Logger.Error("ingest stopped, reads go on", "error", err)
	return true
}
