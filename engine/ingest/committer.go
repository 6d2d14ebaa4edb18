package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/sequencer"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/wal"
)

// batch is a batch of the sequencer on its way through a commit.
type batch struct {
	*sequencer.Batch
	receivedAt time.Time // when the first of its events was taken from the source; zero: there is none
	err        error     // of its commit
}

// slot returns the slot that an error names.
func (b *batch) slot() ledger.Slot { return b.Head.Tip(ledger.Processed).Slot }

// commit makes a batch durable and visible, and then notes the root. It returns ctx's error if ctx ends while the
// disk is full.
func (w *Writer) commit(ctx context.Context, b *batch) error {
	err := w.waitForSpace(ctx, func() error { return w.prepare(b) })
	if err != nil || len(b.Records) == 0 {
		return err
	}
	if err := w.share(ctx, b); err != nil { // outside waitForSpace: a wait for the shared log is not a shortage of the disk
		return err
	}
	if err := w.waitForSpace(ctx, func() error { return w.makeDurable(b) }); err != nil {
		return err
	}
	b.Head.Published = time.Now()
	p := &ledger.Publication{Head: b.Head, Records: b.Records, ReceivedAt: b.receivedAt}
	if w.Shared != nil && b.Head.HasBlock && !b.Final { // before the first head after a snapshot
		w.Board.Tell(p)
	} else {
		w.Board.Publish(p)
	}
	if b.Final {
		w.History.Add(b.Head.Tip(ledger.Processed).Seq, *b.Head.Tip(ledger.Finalized))
	}
	return w.waitForSpace(ctx, func() error { return w.note(b) }) // the root, which is durable now
}

// prepare does what comes before a batch is in a log. After an error that matches wal.ErrNoSpace it may be called again.
func (w *Writer) prepare(b *batch) error {
	if err := w.Board.FenceError(); err != nil {
		return err
	}
	if len(b.Records) > 0 {
		if err := w.requireFree(w.MinFreeBytes); err != nil {
			return err
		}
	}
	return w.note(b) // statuses seen: durable before records that depend on them
}

// makeDurable commits a batch to the own log. After an error that matches wal.ErrNoSpace it may be called again.
func (w *Writer) makeDurable(b *batch) error {
	if err := w.wal.Commit(b.Records); err != nil {
		return diskFailed(b.slot(), err)
	}
	return w.Board.FenceError()
}

// share appends a batch to the shared log, unless there is none, or the batch comes from there.
func (w *Writer) share(ctx context.Context, b *batch) error {
	switch {
	case !w.leads.Load():
		return nil
	case w.resigned.Load():
		return errResigned
	}
	w.commitsAt.Set(time.Now())
	err := w.Shared.Commit(ctx, b.Records)
	w.commitsAt.Set(time.Time{})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ledger.ErrDeposed):
		return fmt.Errorf("slot %d was not committed: %w", b.slot(), err)
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return err
	}
	return &stopError{
		why: "ingest stopped: the shared log failed; reads go on until an operator intervenes",
		err: fmt.Errorf("cannot commit slot %d to the shared log: %w", b.slot(), err),
	}
}

// errResigned ends a node that resigned as the writer of the shared log because its disk accepted no write. Another node may
// have written other records since, and the node cannot undo what it applied: it starts again from what it holds.
var errResigned = fmt.Errorf("%w: its disk took nothing, and it let another one write; start it again, it then waits for its turn", ledger.ErrDeposed)

// note saves in the data directory what no record of the log says: that the source emits statuses,
// before this has an effect, and the root, once the root is durable.
func (w *Writer) note(b *batch) error {
	var root ledger.Opt[ledger.Hash]
	durable := w.Sync == wal.Always || w.wal.Stats().DurableSlot > 0
	if h := w.Board.Head(); h != nil && h.HasBlock && durable {
		root = b.Root
	}
	err := w.Dir.SaveRoot(root, b.Statuses)
	switch {
	case vfs.IsFull(err) || vfs.IsOutOfFiles(err):
		return fmt.Errorf("%w: %w", wal.ErrNoSpace, err)
	case err != nil:
		return diskFailed(b.slot(), err)
	}
	return nil
}

// stopError stops ingest for good, and reads go on at the slot where it stopped.
type stopError struct {
	why  string // for health checks, which are public: it names no file and no host
	disk bool   // the disk failed
	err  error
}

func (e *stopError) Error() string { return e.err.Error() }
func (e *stopError) Unwrap() error { return e.err }

// diskFailed returns the error of a disk that could not make a slot durable.
func diskFailed(slot ledger.Slot, err error) error {
	return &stopError{
		why:  fmt.Sprintf("ingest stopped: slot %d could not be made durable, the disk failed; reads go on until an operator intervenes", slot),
		disk: true, err: fmt.Errorf("cannot make slot %d durable: %w", slot, err),
	}
}
