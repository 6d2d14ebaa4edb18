package ingest

import (
	"context"
	"fmt"
	"time"

	"ledgerd/engine/ledger"
)

// feeder is the goroutine that follows the shared log and runs the source.
type feeder struct {
	*Writer
	loop *loop // of which it uses the channels
	info ledger.SourceInfo
	from *ledger.ResumePoint // where the source continues
}

// call has the loop call a function, and returns its result or the error of ctx.
func (f *feeder) call(ctx context.Context, do func() error) error {
	c := call{do, make(chan error, 1)}
	select {
	case f.loop.calls <- c:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// follow follows the shared log after a point until the node is its writer, and then returns true. If following fails,
// ingest stops and reads go on; but if the node never knew that it held the whole log, follow returns the error.
func (f *feeder) follow(ctx context.Context, after ledger.LogPoint) (leads bool, err error) {
	refused := false // the loop takes nothing more, and knows why
	call := func(do func() error) error {
		err := f.call(ctx, do)
		refused = refused || err != nil
		return err
	}
	now := time.Now()
	f.began.Store(&now)
	err = f.Shared.Follow(ctx, after, func(commit []*ledger.Record) error {
		if len(commit) == 0 {
			return nil
		}
		return call(func() error { return f.loop.replay(commit) })
	})
	if err == nil {
		err = call(func() (err error) {
			f.from, err = f.loop.lead()
			return err
		})
	}
	switch {
	case refused || ctx.Err() != nil:
		return false, nil
	case err == nil:
		return true, nil
	}
	err = fmt.Errorf("cannot follow the shared log: %w", err)
	if !f.knows() {
		return false, err // who started the node is there to see it
	}
	_ = call(func() error {
		return &stopError{why: "the shared log cannot be followed; reads go on until a person looks", err: err}
	})
	return false, nil
}

// runSource runs the source and closes the loop's feed at the end of its input; a source that fails has no end.
func (f *feeder) runSource(ctx context.Context) error {
	if f.Source == nil {
		close(f.loop.feed)
		return nil
	}
	err := f.Source.Run(ctx, f.from, func(ctx context.Context, ev ledger.Event) error {
		if _, isBlock := ev.(*ledger.Block); isBlock {
			now := time.Now()
			f.seen.Store(&now)
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
	return fmt.Errorf("source %s: %w", f.info.Name, err)
}
