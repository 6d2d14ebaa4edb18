package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ledgerd/engine/ledger"
)

// SharedLog is a log that several nodes hold together: one of them at a time writes it, and the
// others follow. Beside it each node keeps a log of its own, which is never ahead of it.
type SharedLog interface {
	// Follow passes every commit after the point to take, in order, whole; none is empty. It returns nil when this node has become the
	// log's writer and everything before was taken; a node that only reads never becomes it. Otherwise it returns ctx's
	// error, what take returned, or why the log cannot be followed (recreated, shortened, damaged; ledger.ErrPurged: the node
	// must begin with a newer snapshot). take returns when the commit was carried out, so a fast implementation reads ahead
	// meanwhile.
	Follow(ctx context.Context, from ledger.LogPoint, take func(commit []*ledger.Record) error) error
	// Commit appends a commit after all that was followed or committed before; it returns when the log acknowledged all
	// of it. ledger.ErrDeposed: another node is the writer now, and no node will ever see this commit.
	// It waits while the log cannot be reached; other errors are final.
	Commit(ctx context.Context, commit []*ledger.Record) error
	// Behind returns for how long the node has not known that it holds the whole log; 0 while the node is the writer, and the
	// longest time.Duration before it knew for the first time.
	Behind() time.Duration
	// Resign lets another node become the writer, and returns at once. Commit and Follow are not called after it. It may be called again,
	// and while one of them runs: such a Commit appends all of its commit, or returns an error.
	Resign()
}

// DefaultMaxLag is for how long a node may not know that it holds the whole shared log and still
// be ready for queries: longer than the servers of a log take to elect a leader.
const DefaultMaxLag = 15 * time.Second

// Writes reports whether what the node holds comes from its own source.
func (w *Writer) Writes() bool { return w.Shared == nil || w.leads.Load() }

// knows reports whether the node has known, since it began to follow, that it holds the whole log.
func (w *Writer) knows() bool {
	began := w.began.Load()
	return !began.IsZero() && w.Shared.Behind() <= time.Since(began)
}

// Lag returns why balancers should send the node no queries, though it answers them; "" while it keeps up with the
// shared log.
func (w *Writer) Lag() string {
	if w.Shared == nil {
		return ""
	}
	if at := w.commitsAt.Load(); !at.IsZero() && time.Since(at) > w.MaxLag {
		return fmt.Sprintf("ingest waits: the shared log has not taken a block for more than %v", w.MaxLag)
	}
	switch behind := w.Shared.Behind(); {
	case !w.knows():
		return "starting: the node has not caught up with the shared log yet"
	case behind > w.MaxLag:
		return fmt.Sprintf("behind the shared log: for %v the node has not known that it holds all of it; reads go on", behind.Truncate(time.Second))
	}
	return ""
}

// feeder is the goroutine that follows the shared log and runs the source.
type feeder struct {
	loop    *loop               // the feeder uses only its channels and what never changes, and has it call functions
	from    *ledger.ResumePoint // where the source continues
	refused bool                // a call failed: the loop takes nothing more, and knows why
}

// call has the loop call a function, and returns its result, or the error of ctx if that ends before the loop takes it.
func (f *feeder) call(ctx context.Context, do func() error) error {
	c := call{do, make(chan error)}
	select {
	case f.loop.calls <- c:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := <-c.done
	f.refused = f.refused || err != nil
	return err
}

// follow follows the shared log after a point until the node is its writer, and then returns true. If following fails,
// ingest stops and reads go on; but if the node never knew that it held the whole log, or if the log was purged past what the
// node needs, follow returns the error.
func (f *feeder) follow(ctx context.Context, after ledger.LogPoint) (leads bool, err error) {
	f.loop.writer.began.Set(time.Now())
	err = f.loop.writer.Shared.Follow(ctx, after, func(commit []*ledger.Record) error {
		return f.call(ctx, func() error { return f.loop.replay(commit) })
	})
	if err == nil {
		ended := f.loop.writer.giveWayUnless() // not in lead: a loop that is full takes no call until the disk has taken a batch
		err = f.call(ctx, f.lead)
		ended()
	}
	switch {
	case f.refused || ctx.Err() != nil:
		return false, nil
	case err == nil:
		return true, nil
	}
	err = fmt.Errorf("cannot follow the shared log: %w", err)
	if !f.loop.writer.knows() || errors.Is(err, ledger.ErrPurged) {
		return false, err // the operator who starts the node sees the error, or a supervisor starts it again
	}
	stop := &stopError{why: "the shared log cannot be followed; reads go on until an operator intervenes", err: err}
	_ = f.call(ctx, func() error { return stop })
	return false, nil
}

// lead makes the node the writer of the shared log and notes where its source continues. The loop calls it. All commits that were
// followed must be on the disk before.
func (f *feeder) lead() error {
	if err := f.loop.flush(); err != nil {
		return err
	}
	f.loop.seq.ResumeSource()
	f.loop.writer.leads.Store(true)
	slot := f.loop.seq.Chain().TipSlot()
	f.loop.writer.Logger.Info("this node writes the shared log now", "record", uint64(f.loop.seq.Version()), "slot", uint64(slot))
	f.from = f.loop.writer.ResumePoint()
	return nil
}

// runSource runs the source and closes the loop's feed at the end of its input; a source that fails has no end.
func (f *feeder) runSource(ctx context.Context) error {
	if f.loop.writer.Source == nil {
		close(f.loop.feed)
		return nil
	}
	err := f.loop.writer.Source.Run(ctx, f.from, func(ctx context.Context, ev ledger.Event) error {
		if _, isBlock := ev.(*ledger.Block); isBlock {
			f.loop.writer.seen.Set(time.Now())
		}
		select {
		case f.loop.feed <- ev:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	switch {
	case err == nil:
		close(f.loop.feed)
		return nil
	case ctx.Err() != nil:
		return nil
	}
	return fmt.Errorf("source %s: %w", f.loop.info.Name, err)
}
