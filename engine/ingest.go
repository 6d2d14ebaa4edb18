package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ledgerd/engine/chain"
	"ledgerd/engine/datadir"
	"ledgerd/engine/fill"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot"
)

// sequence is the sequencer's goroutine. It takes events, or messages of the follower of a shared log, hands their
// records to the committer, folds, and begins snapshots. It returns when ctx ends or
// ingest fails in a way that ends the node.
func (e *Engine) sequence(ctx context.Context, out <-chan *followMsg, stopFollowing func(), events <-chan ledger.Event) error {
	e.commits.start(func(b *batch) error { return e.commit(ctx, b) })
	defer e.commits.stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	fence := e.shared.fence
	for {
		taken, followed, learned := events, out, e.fill.Answers()
		if e.commits.events >= batchEvents {
			taken, followed, learned = nil, nil, nil // the next batch is full, and the one before is not committed
		}
		var logFailed <-chan struct{}
		if e.log != nil && !e.stopped() {
			logFailed = e.log.Failed()
		}
		timer.Reset(e.nextWork(time.Now()))
		var err error
		select {
		case ev, ok := <-taken:
			switch {
			case ok:
				err = e.ingest(ev, events)
			case ctx.Err() != nil:
				err = ctx.Err()
			default:
				events = nil // the input ended
				err = e.endInput()
			}
		case h := <-followed:
			err = e.handle(h)
		case a := <-learned:
			err = e.learn(a)
		case o := <-e.commits.done:
			err = e.batchDone(o)
		case <-timer.C:
		case <-logFailed: // a background sync failed
			err = &logError{e.seq.Chain().TipSlot(), e.log.Err()}
		case <-fence: // the check of a snapshot failed
			fence, err = nil, e.errFenced()
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err == nil {
			err = e.goOn(ctx)
		}
		if err == nil {
			continue
		}
		// The events before the failure are valid, so they are committed.
		if commitErr := e.flush(); commitErr != nil {
			err = commitErr
		}
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil // uncommitted records were never visible
		}
		if err = e.stopIngest(err); err != nil {
			return err
		}
		events, out = nil, nil
		stopFollowing()
		e.shared.resign()
	}
}

// goOn does what is due between two steps: it hands a batch to the committer, folds, and begins a snapshot.
func (e *Engine) goOn(ctx context.Context) error {
	if err := e.handOver(); err != nil {
		return err
	}
	now := time.Now()
	e.seq.FoldDue(now)
	if !e.snapshotDue(now) {
		return nil
	}
	if err := e.flush(); err != nil { // a snapshot has only visible state
		return err
	}
	pace := e.snapshotPace()
	e.beginSnapshot(ctx, pace, func(w snapshot.Written) error { return e.offerSnapshot(ctx, w) })
	return nil
}

// nextWork returns the time until a fold or a snapshot is due.
func (e *Engine) nextWork(now time.Time) time.Duration {
	wait := time.Hour
	if at, ok := e.seq.NextFold(); ok {
		wait = min(wait, at.Sub(now))
	}
	if e.snapshots.interval > 0 && e.snapshotPossible() {
		wait = min(wait, max(e.snapshots.due.Sub(now), 0))
	}
	return wait
}

// ingest handles ev and the events that wait already, up to the size of a batch.
func (e *Engine) ingest(ev ledger.Event, events <-chan ledger.Event) error {
	if e.commits.receivedAt.IsZero() {
		e.commits.receivedAt = time.Now()
	}
	err := e.seq.Handle(ev)
	for e.commits.events++; err == nil && e.commits.events < batchEvents && len(events) > 0; e.commits.events++ {
		err = e.seq.Handle(<-events)
	}
	return err
}

// learn applies fetched accounts as base state. It refuses them while ingest is stopped or paused.
func (e *Engine) learn(a *fill.Answer) error {
	if e.frozen.Load() != nil || e.commits.failed || !e.seq.MayLearn() {
		a.Refuse()
		return nil
	}
	var err error
	if base := e.fill.Learn(a); base != nil {
		err = e.seq.Learn(base)
		e.commits.events++
	}
	a.Done(e.seq.Version())
	return err
}

// endInput finishes a finite input: it commits everything and publishes a head even if there was no event.
func (e *Engine) endInput() error {
	if e.config.Source == nil {
		return nil
	}
	err := e.seq.EndOfInput()
	e.commits.events++ // the end of input may have produced records
	if err != nil {
		return err
	}
	if err := e.flush(); err != nil {
		return err
	}
	if e.head.Load() == nil { // there was no event
		e.publish(&ledger.Publication{Head: e.seq.Head()})
	}
	e.ready.Store(true)
	tip := e.head.Load().Tip(ledger.Processed)
	e.logger.Info("end of input", "source", e.known.Load().info.Name, "slot", tip.Slot, "seq", tip.Seq, "state_hash", e.head.Load().StateHash)
	return nil
}

// stopped reports whether ingest has stopped for good.
func (e *Engine) stopped() bool { return e.frozen.Load() != nil || e.shared.fenced.Load() != nil }

// stopIngest handles an ingest failure. With a live source, a refused rollback or a failed
// log it stops ingest and returns nil: reads go on at the frozen slot, and health gives the reason. A
// finite source that contradicts itself, the root of another ledger, and another writer of the shared
// log end the node: then it returns the error.
func (e *Engine) stopIngest(err error) error {
	if errors.Is(err, ledger.ErrDeposed) {
		return err
	}
	if e.stopped() {
		return nil // the first reason is kept
	}
	var refusal *chain.RefusedError
	var logFailure *logError
	var sharedFailure *sharedLogError
	wasRefused, logFailed, sharedFailed := errors.As(err, &refusal), errors.As(err, &logFailure), errors.As(err, &sharedFailure)
	livesOn := wasRefused || logFailed || sharedFailed || e.known.Load().info.Live && e.shared.writes()
	if !livesOn || errors.Is(err, datadir.ErrOtherLedger) {
		return err
	}
	why := "ingest stopped: " + err.Error()
	switch { // health is public, so the reason names no files
	case sharedFailed:
		why = sharedFailure.why()
	case logFailed:
		e.diskFailure.Store(logFailure)
		why = fmt.Sprintf("ingest stopped: slot %d could not be made durable, the disk failed; reads go on until a person looks", logFailure.slot)
	}
	e.frozen.Store(&why)
	e.logger.Error("ingest stopped, reads go on", "error", err)
	return nil
}

// publish makes a publication's head the newest, wakes waiting queries and notifies OnPublish.
func (e *Engine) publish(p *ledger.Publication) {
	e.head.Store(p.Head)
	if slices.ContainsFunc(p.Records, func(r *ledger.Record) bool { return r.Kind == ledger.BlockRecord }) {
		e.lastShown.Store(e.age())
	}
	e.wake()
	e.notify(p)
	if p.Head.HasBlock { // last: a client that waits for readiness may subscribe at once
		e.ready.Store(true)
	}
}

// wake wakes all goroutines that wait for a publication.
func (e *Engine) wake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.changed)
	e.changed = make(chan struct{})
}

// notify calls Config.OnPublish, if it is set.
func (e *Engine) notify(p *ledger.Publication) {
	if e.config.OnPublish != nil {
		e.config.OnPublish(p)
	}
}
