package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/wal"
)

const (
	// minFreeBytes is the space below which ingest pauses: an operator has some left to work with, and the log
	// never ends in the middle of a record.
	minFreeBytes = 64 << 20
	// spaceRetry is how often the free space of a full disk is read again.
	spaceRetry = time.Second
	// snapshotReserve is how much more than ingest a snapshot leaves free: snapshots stop first.
	snapshotReserve = 2
)

// diskState is what is known of the disk's free space. Any goroutine may read it, but for checked.
type diskState struct {
	full    atomic.Bool // ingest waits for space, or for file descriptors
	files   atomic.Bool // it waits for file descriptors
	pauses  atomic.Uint64
	free    atomic.Uint64 // bytes, as of checked
	checked time.Time     // when free was read; the committer alone touches it
}

// syncRecovered makes durable what recovery found. Before it returns nothing of that may be published.
func (e *Engine) syncRecovered(ctx context.Context, end wal.End) error {
	if e.log == nil {
		return nil
	}
	if err := e.withSpace(ctx, func() error { return e.log.Settle(end) }); err != nil {
		return fmt.Errorf("cannot go on with the log: %w", err)
	}
	return nil
}

// withSpace calls try until it does not fail for want of space. Meanwhile ingest waits, and the source with it: a
// call that failed for want of space has done nothing, so nothing is lost.
func (e *Engine) withSpace(ctx context.Context, try func() error) error {
	for {
		err := try()
		if !errors.Is(err, wal.ErrNoSpace) {
			if err == nil && e.disk.full.Swap(false) {
				e.logger.Info("ingest goes on: the disk takes what is written again")
			}
			return err
		}
		e.disk.files.Store(vfs.IsOutOfFiles(err))
		if !e.disk.full.Swap(true) {
			e.disk.pauses.Add(1)
			e.logger.Error(e.disk.shortage()+": ingest waits", "error", err)
		}
		select {
		case <-time.After(spaceRetry):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// shortage returns why ingest waits for the disk, "" while it does not.
func (d *diskState) shortage() string {
	switch {
	case !d.full.Load():
		return ""
	case d.files.Load():
		return "no further file can be opened"
	}
	return "the disk is full"
}

// note saves in the data directory what no record of the log tells: that the source speaks of finality,
// before that has an effect, and the root, once it is durable.
func (e *Engine) note(b *batch) error {
	if e.config.Dir == nil {
		return nil
	}
	var root ledger.Opt[ledger.Hash]
	durable := e.config.Sync.Mode == wal.Always || e.log != nil && e.log.Stats().DurableSlot > 0
	if h := e.head.Load(); h != nil && h.HasBlock && durable {
		root = b.Root
	}
	err := e.config.Dir.SaveRoot(root, b.Statuses)
	switch {
	case vfs.IsFull(err) || vfs.IsOutOfFiles(err):
		return fmt.Errorf("%w: %w", wal.ErrNoSpace, err)
	case err != nil:
		return &logError{b.Head.Tip(ledger.Processed).Slot, err}
	}
	return nil
}

// requireFreeForLog returns an error that matches wal.ErrNoSpace where less than Config.MinFreeBytes is free.
// It reads the free space at most once in spaceRetry.
func (e *Engine) requireFreeForLog() error {
	now := time.Now()
	if e.config.Dir == nil || !e.disk.full.Load() && now.Sub(e.disk.checked) < spaceRetry {
		return nil
	}
	e.disk.checked = now
	return e.requireFree(e.config.MinFreeBytes)
}

// wantedForSnapshot returns how many bytes must be free so that a snapshot does not take the
// space that the log needs.
func (e *Engine) wantedForSnapshot() uint64 {
	return snapshotReserve*e.config.MinFreeBytes + uint64(e.snapshots.stats.bytes.Load())
}

// requireFree returns an error that matches wal.ErrNoSpace where fewer bytes are free.
func (e *Engine) requireFree(bytes uint64) error {
	free, err := e.config.Dir.FS().FreeBytes(e.config.Dir.Path())
	if err != nil {
		return nil // the write itself will fail if there is no space
	}
	e.disk.free.Store(free)
	if free < bytes {
		return fmt.Errorf("%d bytes are free in %s and %d are wanted: %w", free, e.config.Dir.Path(), bytes, wal.ErrNoSpace)
	}
	return nil
}
