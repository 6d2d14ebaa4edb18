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

// committer makes batches durable and then visible, one after the other, on a goroutine of its
// own. Meanwhile the next one grows; there is never a third.
type committer struct {
	batches chan *batch  // to the goroutine
	done    chan outcome // and back
	running sync.WaitGroup

	// What follows is the sequencer's.
	busy       bool      // it has a batch
	failed     bool      // it never gets another one: what was applied since stays unseen
	events     int       // taken for the next one
	receivedAt time.Time // when the first of them was
}

// outcome is the result of a commit. A batch that was published may have an error too.
type outcome struct {
	batch *batch
	err   error
}

// start begins the goroutine, which ends with stop.
func (c *committer) start(commit func(*batch) error) {
	c.batches, c.done = make(chan *batch, 1), make(chan outcome, 1)
	c.running.Go(func() {
		for b := range c.batches {
			c.done <- outcome{b, commit(b)}
		}
	})
}

// stop ends the goroutine, after the batch that it has.
func (c *committer) stop() {
	close(c.batches)
	c.running.Wait()
}

// handOver gives the committer what was applied since the last batch, unless it still has that one.
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

// handedBack processes the outcome of a batch.
func (e *Engine) handedBack(o outcome) error {
	e.commits.busy = false
	e.commits.failed = e.commits.failed || o.err != nil
	if o.batch.shown || o.err == nil {
		e.seq.Shown(o.batch.Batch)
	}
	return o.err
}

// settle waits until everything applied is visible, or returns why it never will be. Once a batch
// failed it has nothing to wait for and returns nil: then ingest is frozen.
func (e *Engine) settle() error {
	for {
		if err := e.handOver(); err != nil || !e.commits.busy {
			return err
		}
		if err := e.handedBack(<-e.commits.done); err != nil {
			return err
		}
	}
}

// commit makes a batch durable and visible. It returns ctx's error if that ends while the disk is
// full: then nobody ever sees it.
func (e *Engine) commit(ctx context.Context, b *batch) error {
	return e.withSpace(ctx, func() error {
		if err := e.errFenced(); err != nil {
			return err
		}
		unseen := len(b.Records) > 0 && !b.shown // it may be that only the last note found no space
		if unseen {
			if err := e.requireFreeForLog(); err != nil {
				return err
			}
		}
		if err := e.note(b); err != nil { // what the records build on
			return err
		}
		if unseen {
			if err := e.share(ctx, b); err != nil {
				return err
			}
			if err := e.store.Commit(b.Records); err != nil {
				return &logError{b.Slot, err}
			}
			if err := e.errFenced(); err != nil {
				return err
			}
			e.show(b, e.publishTo(b))
		}
		return e.note(b) // what is durable now
	})
}

// publishTo returns the function that publishes a batch: publish or, before the first head after the snapshot of a
// shared log, tell, which does not make the head the newest.
func (e *Engine) publishTo(b *batch) func(*ledger.Publication) {
	if e.shared.log != nil && b.Head.HasBlock && !b.Final.Known {
		return e.tell
	}
	return e.publish
}

// show publishes a batch, which is durable.
func (e *Engine) show(b *batch, publish func(*ledger.Publication)) {
	b.shown, b.Head.Published = true, time.Now()
	publish(&ledger.Publication{Head: b.Head, Records: b.Records, ReceivedAt: b.receivedAt})
	if b.Final.Known {
		e.history.add(b.Seq, b.Final.Value)
	}
}
