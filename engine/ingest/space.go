package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"ledgerd/engine/datadir"
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

// space is what is known of the disk's free space. Any goroutine may read it, but for checked.
type space struct {
	dir    *datadir.Dir // nil: nothing is written
	least  uint64       // bytes; ingest pauses where fewer are free
	logger *slog.Logger

	short   atomic.Pointer[string] // why ingest waits; nil: it does not
	pauses  atomic.Uint64
	free    atomic.Uint64 // bytes, as of checked
	checked time.Time     // when free was read for the log; the committer alone touches it
}

// wait calls try until it does not fail for want of space. Meanwhile ingest waits, and the source with it: a
// call that failed for want of space has done nothing, so nothing is lost.
func (s *space) wait(ctx context.Context, try func() error) error {
	for {
		err := try()
		if !errors.Is(err, wal.ErrNoSpace) {
			if err == nil && s.short.Swap(nil) != nil {
				s.logger.Info("ingest goes on: the disk takes what is written again")
			}
			return err
		}
		why := "the disk is full"
		if vfs.IsOutOfFiles(err) {
			why = "no further file can be opened"
		}
		if s.short.Swap(&why) == nil {
			s.pauses.Add(1)
			s.logger.Error(why+": ingest waits", "error", err)
		}
		select {
		case <-time.After(SpaceRetry):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// shortage returns why ingest waits for the disk, "" while it does not.
func (s *space) shortage() string {
	if why := s.short.Load(); why != nil {
		return *why
	}
	return ""
}

// requireForLog returns an error that matches wal.ErrNoSpace where less is free than the log needs.
// It reads the free space at most once in SpaceRetry.
func (s *space) requireForLog() error {
	now := time.Now()
	if s.dir == nil || s.short.Load() == nil && now.Sub(s.checked) < SpaceRetry {
		return nil
	}
	s.checked = now
	return s.require(s.least)
}

// require returns an error that matches wal.ErrNoSpace where fewer bytes are free.
func (s *space) require(bytes uint64) error {
	free, err := s.dir.FS().FreeBytes(s.dir.Path())
	if err != nil {
		return nil // the write itself will fail if there is no space
	}
	s.free.Store(free)
	if free < bytes {
		return fmt.Errorf("%d bytes are free in %s and %d are wanted: %w", free, s.dir.Path(), bytes, wal.ErrNoSpace)
	}
	return nil
}
