package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/wal"
)

const (
	// minFreeBytes is the space below which ingest pauses: an operator has some left to work with, and the log
	// never ends in the middle of a record.
	minFreeBytes = 64 << 20
	// SpaceRetry is how often the free space of a full disk is read again.
	SpaceRetry = time.Second
)

// Shortage returns why ingest waits for the disk, "" while it does not.
func (w *Writer) Shortage() string {
	if why := w.short.Load(); why != nil {
		return *why
	}
	return ""
}

// waitForSpace calls try until it does not fail for want of space. Meanwhile ingest waits, and the source with it: a
// call that failed for want of space has done nothing, so nothing is lost.
func (w *Writer) waitForSpace(ctx context.Context, try func() error) error {
	for {
		err := try()
		if !errors.Is(err, wal.ErrNoSpace) {
			if err == nil && w.short.Swap(nil) != nil {
				w.Logger.Info("ingest goes on: the disk takes what is written again")
			}
			return err
		}
		why := "the disk is full"
		if vfs.IsOutOfFiles(err) {
			why = "no further file can be opened"
		}
		if w.short.Swap(&why) == nil {
			w.pauses.Add(1)
			w.Logger.Error(why+": ingest waits", "error", err)
		}
		select {
		case <-time.After(SpaceRetry):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// requireFree returns an error that matches wal.ErrNoSpace where fewer bytes are free.
func (w *Writer) requireFree(bytes uint64) error {
	free, err := w.Dir.FS().FreeBytes(w.Dir.Path())
	if err != nil {
		return nil // the write itself will fail if there is no space
	}
	w.free.Store(free)
	if free < bytes {
		return fmt.Errorf("%d bytes are free in %s and %d are wanted: %w", free, w.Dir.Path(), bytes, wal.ErrNoSpace)
	}
	return nil
}
