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
	// minFreeBytes is the space below which ingest pauses: what is left lets a person look
	// around, and the log never ends in the middle of a record.
	minFreeBytes = 64 << 20
	// spaceRetry is how often a full disk is looked at again.
	spaceRetry = time.Second
	// snapshotReserve is how much more than ingest a snapshot leaves free: snapshots stop first.
	snapshotReserve = 2
)

// diskState is what is known of the disk's trouble. Anybody may read it, but for checked.
type diskState struct {
	full    atomic.Bool // ingest waits for space, or for files
	files   atomic.Bool // it waits for files
	pauses  atomic.Uint64
	free    atomic.Uint64 // bytes, as far as was asked last
	checked time.Time     // when that was; the committer alone touches it
}

// settleLog makes durable what recovery found. Before it returns nothing of that may be seen.
func (e *Engine) settleLog(ctx context.Context, end wal.End) error {
	if e.log == nil {
		return nil
	}
	if err := e.withSpace(ctx, func() error { return e.log.Settle(end) }); err != nil {
		return fmt.Errorf("cannot go on with the log: %w", err)
	}
	return nil
}

// withSpace tries until there is space on the disk for what it does. Meanwhile ingest waits, and
// the source with it: what failed for want of space was not done, so nothing is lost.
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

// shortage says why ingest waits for the disk, "" while it does not.
func (d *diskState) shortage() string {
	switch {
	case !d.full.Load():
		return ""
	case d.files.Load():
		return "no further file can be opened"
	}
	return "the disk is full"
}

// note keeps, beside the log, what no record of it tells: that the source speaks of finality,
// before that has an effect, and the root, once it is durable.
func (e *Engine) note(b *batch) error {
	if e.config.Dir == nil {
		return nil
	}
	var root ledger.Opt[ledger.Hash]
	durable := e.config.Sync.Mode == wal.Always || e.log != nil && e.log.Stats().DurableSlot > 0
	if h := e.head.Load(); h != nil && h.HasBlock && durable {
		root = b.root
	}
	err := e.config.Dir.SaveRoot(root, b.statuses)
	switch {
	case vfs.IsFull(err) || vfs.IsOutOfFiles(err):
		return fmt.Errorf("%w: %w", wal.ErrNoSpace, err)
	case err != nil:
		return &logError{b.slot, err}
	}
	return nil
}

// roomForLog returns an error that matches wal.ErrNoSpace where the disk is about to be full.
// It asks at most once in spaceRetry.
func (e *Engine) roomForLog() error {
	now := time.Now()
	if e.config.Dir == nil || !e.disk.full.Load() && now.Sub(e.disk.checked) < spaceRetry {
		return nil
	}
	e.disk.checked = now
	return e.room(e.config.MinFreeBytes)
}

// wantedForSnapshot returns how many bytes must be free so that a snapshot does not take the
// space that the log needs.
func (e *Engine) wantedForSnapshot() uint64 {
	return snapshotReserve*e.config.MinFreeBytes + uint64(e.snapshots.stats.bytes.Load())
}

// room returns an error that matches wal.ErrNoSpace where fewer bytes are free.
func (e *Engine) room(bytes uint64) error {
	free, err := e.config.Dir.FS().FreeBytes(e.config.Dir.Path())
	if err != nil {
		return nil // where nobody knows, the write itself will tell
	}
	e.disk.free.Store(free)
	if free < bytes {
		return fmt.Errorf("%d bytes are free in %s and %d are wanted: %w", free, e.config.Dir.Path(), bytes, wal.ErrNoSpace)
	}
	return nil
}
