package engine

import (
	"context"
	"errors"
	"time"

	"ledgerd/engine/ledger"
)

// sequence is the sequencer's goroutine: it takes events, commits what they led to, folds
// what is due, and returns when ctx ends or ingest failed for good.
func (e *Engine) sequence(ctx context.Context, events <-chan ledger.Event) error {
	if e.config.Source == nil {
		e.publish(&ledger.Publication{Head: e.seq.head(e.seq.chain, time.Now())})
		e.ready.Store(true)
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if at, ok := e.seq.folds.next(); ok {
			timer.Reset(time.Until(at))
		}
		var err error
		select {
		case ev, ok := <-events:
			switch {
			case ok:
				err = e.ingest(ev, events)
			case ctx.Err() != nil:
				return nil
			default:
				events = nil // the input ended
				err = e.finish()
			}
		case <-timer.C:
		case <-ctx.Done():
			return nil
		}
		if err != nil {
			if err = e.stopIngest(err); err != nil {
				return err
			}
			events = nil
		}
		e.seq.foldDue(time.Now())
	}
}

// ingest handles ev and the events that wait already, and commits them together.
func (e *Engine) ingest(ev ledger.Event, events <-chan ledger.Event) error {
	err := e.offer(ev)
	for n := 1; n < eventLane && err == nil && len(events) > 0; n++ {
		err = e.offer(<-events)
	}
	// What came before a failure is good.
	if commitErr := e.commit(); commitErr != nil {
		return commitErr
	}
	return err
}

// offer handles ev, or holds it back while too much is unfinalized: then only statuses
// can make room.
func (e *Engine) offer(ev ledger.Event) error {
	status, isStatus := ev.(*ledger.SlotStatus)
	if isStatus && e.backlog.waits() && !e.seq.knows(status) {
		return e.backlog.add(ev) // it may be about a block that is held back
	}
	if !isStatus && (e.backlog.waits() || e.seq.overflows()) {
		if !e.backlog.waits() {
			e.logger.Warn("ingest pauses: too much is unfinalized", "bytes", e.seq.chain.unfinalizedBytes)
		}
		return e.backlog.add(ev)
	}
	if err := e.seq.handle(ev); err != nil {
		return err
	}
	for e.backlog.waits() && !e.seq.overflows() {
		if err := e.seq.handle(e.backlog.take()); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) commit() error {
	if err := e.seq.commit(e.seq.chain); err != nil {
		return err
	}
	e.paused.Store(e.backlog.waits())
	return nil
}

// finish settles the end of the input.
func (e *Engine) finish() error {
	if e.config.Source == nil {
		return nil
	}
	err := e.seq.endOfInput()
	if n := len(e.backlog.events); err == nil && n > 0 {
		err = refused("the input ended with %d events held back because too much is unfinalized", n)
	}
	if commitErr := e.commit(); commitErr != nil {
		return commitErr
	}
	if err != nil {
		return err
	}
	if e.head.Load() == nil { // nothing came at all
		e.publish(&ledger.Publication{Head: e.seq.head(e.seq.chain, time.Now())})
	}
	e.ready.Store(true)
	tip := e.head.Load().Tip(ledger.Processed)
	e.logger.Info("end of input", "source", e.info.Name, "slot", tip.Slot, "seq", tip.Seq, "state_hash", e.head.Load().StateHash)
	return nil
}

// stopIngest decides what an ingest failure means: where the source lives on, or a rollback
// was refused, or the log failed, reads go on at the frozen slot and health says why. A
// finite source that contradicts itself ends the node, and so does the root of another ledger.
func (e *Engine) stopIngest(err error) error {
	var refusal *refusedError
	var logFailure *logError
	reads := e.info.Live || errors.As(err, &refusal) || errors.As(err, &logFailure)
	if !reads || errors.Is(err, errOtherLedger) {
		return err
	}
	why := "ingest stopped: " + err.Error()
	e.frozen.Store(&why)
	e.logger.Error("ingest stopped, reads go on", "error", err)
	return nil
}

// publish makes a publication's head the newest and tells everybody.
func (e *Engine) publish(p *ledger.Publication) {
	e.head.Store(p.Head)
	if p.Head.HasBlock {
		e.ready.Store(true)
	}
	e.mu.Lock()
	close(e.changed)
	e.changed = make(chan struct{})
	e.mu.Unlock()
	if e.config.OnPublish != nil {
		e.config.OnPublish(p)
	}
}

// backlog holds back events, in order, while too much is unfinalized. It is bounded by
// maxWaitingBytes: past that the source finalizes nothing, and ingest stops.
type backlog struct {
	events []ledger.Event
	bytes  int
}

func (b *backlog) waits() bool { return len(b.events) > 0 }

func (b *backlog) add(ev ledger.Event) error {
	if b.bytes > maxWaitingBytes {
		return refused("more than %d bytes of blocks are unfinalized and the source finalizes none of them", maxUnfinalizedBytes)
	}
	b.bytes += eventBytes(ev)
	b.events = append(b.events, ev)
	return nil
}

func (b *backlog) take() ledger.Event {
	ev := b.events[0]
	b.events[0] = nil
	b.events = b.events[1:]
	b.bytes -= eventBytes(ev)
	return ev
}

// eventBytes estimates what an event holds in memory.
func eventBytes(ev ledger.Event) int {
	const statusBytes = 64
	switch ev := ev.(type) {
	case *ledger.Block:
		return ev.SizeBytes()
	case *ledger.BaseState:
		return ev.SizeBytes()
	}
	return statusBytes
}
