package engine

import (
	"context"
	"sync"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/sequencer"
)

// batch is a batch of the sequencer on its way through a commit.
type batch struct {
	*sequencer.Batch
	receivedAt time.Time // when the first of its events was taken from the source; zero: there is none
	shared     bool      // it is in the shared log
	shown      bool      // it is durable and published
}

// committer makes batches durable and then visible, one after the other, on its own
// goroutine. Meanwhile the sequencer fills the next one; there is never a third.
type committer struct {
	batches chan *batch  // to the goroutine
	done    chan outcome // and back
	running sync.WaitGroup

	// The sequencer owns these.
	busy       bool      // the goroutine has a batch
	failed     bool      // a batch failed: the goroutine gets no other, and later records never become visible
	events     int       // taken for the next batch
	receivedAt time.Time // when the first of these was taken
}

// outcome is the result of a commit. A batch that was published may have an error too.
type outcome struct {
	batch *batch
	err   error
}

// start starts the goroutine, which stop ends.
func (c *committer) start(commit func(*batch) error) {
	c.batches, c.done = make(chan *batch, 1), make(chan outcome, 1)
	c.running.Go(func() {
		for b := range c.batches {
			c.done <- outcome{b, commit(b)}
		}
	})
}

// stop ends the goroutine and waits for it, and for the batch that it has.
func (c *committer) stop() {
	close(c.batches)
	c.running.Wait()
}

// handOver gives the committer the next batch, unless it still has one.
func (e *Engine) handOver() error {
	c := &e.commits
	if c.busy || c.failed || c.events == 0 {
		return nil
	}
	sealed, err := e.seq.Seal()
	if err != nil {
		c.failed = true
		return err
	}
	e.paused.Store(e.seq.Paused())
	b := &batch{Batch: sealed, receivedAt: c.receivedAt, shared: !e.shared.writes()}
	c.busy, c.events, c.receivedAt = true, 0, time.Time{}
	c.batches <- b
	return nil
}

// batchDone processes the outcome of a batch.
func (e *Engine) batchDone(o outcome) error {
	e.commits.busy = false
	e.commits.failed = e.commits.failed || o.err != nil
	if o.batch.shown || o.err == nil {
		e.seq.Shown(o.batch.Batch)
	}
	return o.err
}

// flush waits until everything applied is visible, or returns why it never will be. After a batch
// failed it returns nil at once: ingest is frozen then.
func (e *Engine) flush() error {
	for {
		if err := e.handOver(); err != nil || !e.commits.busy {
			return err
		}
		if err := e.batchDone(<-e.commits.done); err != nil {
			return err
		}
	}
}

// commit makes a batch durable and visible. It returns ctx's error if ctx ends while the disk is
// full; the batch then never becomes visible.
func (e *Engine) commit(ctx context.Context, b *batch) error {
	return e.withSpace(ctx, func() error {
		if err := e.errFenced(); err != nil {
			return err
		}
		unseen := len(b.Records) > 0 && !b.shown // false in a retry after only the second note failed
		if unseen {
			if err := e.requireFreeForLog(); err != nil {
				return err
			}
		}
		if err := e.note(b); err != nil { // statuses seen: durable before records that depend on them
			return err
		}
		if unseen {
			if err := e.share(ctx, b); err != nil {
				return err
			}
			if err := e.store.Commit(b.Records); err != nil {
				return &logError{b.Head.Tip(ledger.Processed).Slot, err}
			}
			if err := e.errFenced(); err != nil {
				return err
			}
			e.show(b, e.publishTo(b))
		}
		return e.note(b) // the root, which is durable now
	})
}

// publishTo returns the function that publishes a batch: publish or, before the first head after the snapshot of a
// shared log, notify, which does not make the head the newest.
func (e *Engine) publishTo(b *batch) func(*ledger.Publication) {
	if e.shared.log != nil && b.Head.HasBlock && !b.Final {
		return e.notify
	}
	return e.publish
}

// show publishes a batch, which is durable.
func (e *Engine) show(b *batch, publish func(*ledger.Publication)) {
	b.shown, b.Head.Published = true, time.Now()
	publish(&ledger.Publication{Head: b.Head, Records: b.Records, ReceivedAt: b.receivedAt})
	if b.Final {
		e.history.add(b.Head.Tip(ledger.Processed).Seq, *b.Head.Tip(ledger.Finalized))
	}
}
