package wal

import (
	"errors"
	"fmt"
	"io/fs"

	"ledgerd/engine/ledger"
)

// Prune removes the segments all of whose records are below a version, oldest first, with what was cut
// off them and kept aside. The segment that holds the version stays, and so do those after it, and the newest in any case.
// An error that does not match ErrFailed leaves the log as it was, with fewer segments. Some file
// systems need space to remove a file: then it matches ErrNoSpace.
func (l *Log) Prune(below ledger.Version) error {
	for {
		// The lock is released between two segments, so that commits need not wait for all of them.
		l.mu.Lock()
		done, err := l.pruneOneLocked(below)
		l.mu.Unlock()
		if done || err != nil {
			return err
		}
	}
}

// pruneOneLocked removes the oldest segment; done is true if none is to be removed. Each removal is made
// durable before the next: a crash must not bring back an older one alone.
func (l *Log) pruneOneLocked(below ledger.Version) (done bool, err error) {
	if err := l.usableLocked(); err != nil {
		return false, err
	}
	if l.file == nil || len(l.segments) < 2 || l.segments[1].first > below {
		return true, nil
	}
	g := &l.segments[0]
	for _, name := range []string{g.name + brokenSuffix, g.name} {
		if err := l.c.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("cannot remove segment %d: %w", g.index, outOfSpace(err))
		}
	}
	if err := l.failUnlessFull(syncDir(l.c.FS, l.c.Dir)); err != nil {
		return false, err // want of space: the next call removes again what may be gone
	}
	l.segments = append(l.segments[:0:0], l.segments[1:]...)
	l.publishLocked()
	return false, nil
}
