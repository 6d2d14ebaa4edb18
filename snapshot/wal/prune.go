package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// Prune removes the segments all of whose records are below a version, oldest first, with the .broken files of
// their torn tails. The segment that holds the version stays, as do those after it and, in any case, the newest.
// After an error that does not match ErrFailed the log goes on, perhaps with fewer segments. Some file
// systems need space to remove a file: then the error matches ErrNoSpace.
func (l *Log) Prune(below ledger.Version) error {
	l.pruning.Lock()
	defer l.pruning.Unlock()
	for {
		g, err := l.prunable(below)
		if g == nil || err != nil {
			return err
		}
		// Commits go on meanwhile. Each removal is made durable before the next: a crash must not bring back
		// an older segment alone.
		for _, name := range []string{g.name + brokenSuffix, g.name} {
			if err := l.c.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("cannot remove segment %d: %w", g.index, outOfSpace(err))
			}
		}
		if err := l.failUnlessFull(syncDir(l.c.FS, l.c.Dir)); err != nil {
			return err // lack of space: the next call tries to remove both files again
		}
		l.mu.Lock()
		l.segments = append(l.segments[:0:0], l.segments[1:]...)
		l.publishLocked()
		l.mu.Unlock()
	}
}

// prunable returns the oldest segment if all of its records are below a version, else nil.
func (l *Log) prunable(below ledger.Version) (*segment, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usableLocked(); err != nil {
		return nil, err
	}
	if l.file == nil || len(l.segments) < 2 || l.segments[1].first > below {
		return nil, nil
	}
	g := l.segments[0]
	return &g, nil
}

// Remove removes a log that holds no record, so that another can begin in its place. A crash
// on the way leaves an empty log. Names that are not ours stay.
func Remove(disk vfs.FS, dir string) error {
	names, err := disk.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot list the log: %w", outOfSpace(err))
	}
	// newest goes first: a segment that it names must not be missing.
	for _, segments := range []bool{false, true} {
		for _, name := range names {
			if _, segment := segmentIndex(name); segment != segments || !segment && name != newestName && !isTemporary(name) {
				continue
			}
			if err := disk.Remove(filepath.Join(dir, name)); err != nil {
				return fmt.Errorf("cannot remove a log that was begun: %w", outOfSpace(err))
			}
		}
		if err := syncDir(disk, dir); err != nil {
			return err
		}
	}
	return nil
}
