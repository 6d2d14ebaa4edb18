package engine

import (
	"context"
	"errors"
	"fmt"

	"ledgerd/engine/ledger"
)

// # Following a shared log
//
// A node of a cluster follows what another one writes: the commits go through the same replay as those
// of its own log after a restart, where each record is held against what it leads to, then into the own
// log, and then they are published. Several that wait share one commit of the own log.
//
// Should it become the writer it stands where a restart on the same log would have left it, and its source
// goes on from the finalized block and shows again the blocks beside the chain and those that waited for their parent:
// the previous writer knew them and never recorded them.
//
// After a snapshot nothing is visible before the status that finalized its block was followed: until then the levels are
// not ones that were ever published together.

// followMsg is a message from the follower of the shared log to the sequencer.
type followMsg struct {
	commit []*ledger.Record // nil where there is nothing more to follow
	err    error            // without a commit: why; nil if the node is the log's writer now
	done   chan error       // has room for one

	from *ledger.ResumePoint // where the source goes on, after done, of a writer
}

// send sends the message to the sequencer and returns what processing it returned, or the error of ctx.
func (h *followMsg) send(ctx context.Context, out chan<- *followMsg) error {
	h.done = make(chan error, 1)
	select {
	case out <- h:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-h.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// feed follows the shared log, if there is one, until the node is its writer, and then runs the source.
func (e *Engine) feed(ctx, following context.Context, from *ledger.ResumePoint, out chan<- *followMsg, events chan<- ledger.Event) error {
	if e.shared.log != nil {
		leads, err := e.followShared(following, out)
		if err != nil || leads == nil {
			return err
		}
		from = leads.from
	}
	return e.follow(ctx, from, events)
}

// followShared follows the shared log until the node is its writer, and returns the message that made it so. It returns
// nil where following ended otherwise.
func (e *Engine) followShared(ctx context.Context, out chan<- *followMsg) (leads *followMsg, err error) {
	refused := false // the sequencer takes nothing more, and knows why
	send := func(h *followMsg) error {
		err := h.send(ctx, out)
		refused = refused || err != nil
		return err
	}
	e.shared.began.Store(e.age())
	err = e.shared.log.Follow(ctx, e.shared.from, func(commit []*ledger.Record) error {
		if len(commit) == 0 {
			return nil
		}
		return send(&followMsg{commit: commit})
	})
	switch {
	case refused || ctx.Err() != nil:
		return nil, nil
	case err == nil:
		leads = new(followMsg)
		if send(leads) != nil {
			return nil, nil
		}
		return leads, nil
	}
	err = fmt.Errorf("cannot follow the shared log: %w", err)
	if !e.shared.knows(e.age()) {
		return nil, err // it never could: who started the node is there to see
	}
	_ = send(&followMsg{err: err})
	return nil, nil
}

// handle processes one message from the follower.
func (e *Engine) handle(h *followMsg) error {
	var err error
	switch {
	case h.commit != nil:
		err = e.replayFollowed(h.commit)
	case h.err != nil:
		err = &sharedLogError{following: true, err: h.err}
	default:
		err = e.lead(h)
	}
	h.done <- err
	return err
}

// replayFollowed applies a commit of the shared log. If that leads to another state than the commit states, the node
// fences itself off. A part of a commit never becomes visible.
func (e *Engine) replayFollowed(commit []*ledger.Record) error {
	err := e.seq.Follow(commit)
	if err == nil {
		e.commits.events += len(commit)
		return nil
	}
	e.commits.failed = true
	if errors.Is(err, ledger.ErrCorrupt) {
		e.fence(err)
	}
	return err
}

// lead makes the node the writer.
func (e *Engine) lead(h *followMsg) error {
	if err := e.flush(); err != nil {
		return err
	}
	// Only the writer before knew which blocks up to here belong nowhere.
	e.seq.ResumeSource()
	e.shared.leads.Store(true)
	close(e.shared.led)
	h.from = e.resumePoint()
	e.logger.Info("this node writes the shared log now", "record", uint64(e.seq.Version()), "slot", uint64(e.seq.Chain().TipSlot()))
	return nil
}

// fence stops all answers, because the state of the node is not the one that the log states.
func (e *Engine) fence(err error) {
	log := "its log"
	if e.shared.log != nil {
		log = "the shared log"
	}
	why := "the node fenced itself off, what it holds differs from " + log + ": " + err.Error()
	if !e.shared.fenced.CompareAndSwap(nil, &why) {
		return
	}
	close(e.shared.fence)
	e.logger.Error("the node fenced itself off: nothing is answered any more", "error", err)
	e.wake()
}

// Fenced says why the node answers nothing any more, "" while all is well: what it holds differs
// from what the log says.
func (e *Engine) Fenced() string {
	if why := e.shared.fenced.Load(); why != nil {
		return *why
	}
	return ""
}

// FencedOff returns a channel that is closed when the node fences itself off.
func (e *Engine) FencedOff() <-chan struct{} { return e.shared.fence }

// errFenced refuses questions to a node that fenced itself off, nil if it did not.
func (e *Engine) errFenced() error {
	if why := e.Fenced(); why != "" {
		return fmt.Errorf("%s: %w", why, ledger.ErrUnavailable)
	}
	return nil
}
