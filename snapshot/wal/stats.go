package wal

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"

	"ledgerd/engine/ledger"
)

// Part is a file of a log as it stood at one moment: bytes before its end do not change any more.
type Part struct {
	Name  string // in the directory of the log
	Bytes int64
	io.ReaderAt
	io.Closer
}

// Parts returns the files that hold the log up to its newest commit, without what is preallocated or not finished. Copies of them
// are a log that ends there. The caller closes them; until then the log may be written and pruned. Before Settle it fails.
func (l *Log) Parts() (parts []Part, err error) {
	l.pruning.Lock()
	defer l.pruning.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		return nil, fmt.Errorf("the log in %s has not been settled", l.c.Dir)
	}
	defer func() {
		if err != nil {
			for _, p := range parts {
				_ = p.Close()
			}
			parts = nil
		}
	}()
	for i := range l.segments {
		g := &l.segments[i]
		f, err := l.c.FS.Open(g.name)
		if err != nil {
			return parts, fmt.Errorf("cannot open a segment: %w", err)
		}
		parts = append(parts, Part{filepath.Base(g.name), g.size, f, f})
	}
	if len(parts) > 0 {
		content := newest{index: l.newestLocked().index, durable: l.durable.position}.encode()
		parts = append(parts, Part{newestName, int64(len(content)), bytes.NewReader(content), io.NopCloser(nil)})
	}
	return parts, nil
}

// Stats are the figures of a log.
type Stats struct {
	Segments    int
	Bytes       int64       // of all segments, as written
	Torn        int64       // bytes that a crash had left after the newest whole commit when the log was opened
	Position    Position    // after the newest record
	DurableSlot ledger.Slot // the chain's tip after the newest record that survives a crash
}

// publishLocked updates the figures.
func (l *Log) publishLocked() {
	s := &Stats{Segments: len(l.segments), Torn: l.found.torn, Position: l.state.position, DurableSlot: l.durable.slot}
	for i := range l.segments {
		s.Bytes += l.segments[i].size
	}
	l.stats.Store(s)
}

// Stats returns the figures after the newest commit or sync. Any goroutine may call it; it never waits for
// the disk.
func (l *Log) Stats() Stats { return *l.stats.Load() }
