package wal

import (
	"fmt"

	"ledgerd/engine/ledger"
)

// Entry is a record and its place in the log.
type Entry struct {
	Record    *ledger.Record
	Segment   uint64   // index
	Offset    int64    // of its frame in the segment
	Position  Position // of its frame in the log
	Durable   Position // highest position known durable when it was written
	SizeBytes int      // of its frame, padding included

	frame frame
	tip   ledger.Slot // of the chain before it
}

// End is where a log ends.
type End struct {
	state
	durable  Position
	segments []segment
	offset   int64  // in the last segment, after the last whole commit
	torn     int64  // bytes after it that a crash left
	reason   string // why they are not whole
}

// Version returns that of the newest whole record or, for an empty log, of the one before the first that
// it may hold: 0 unless Create began it with another.
func (e End) Version() ledger.Version { return e.version }

// Oldest returns the version of the oldest record that the log holds, 0 for an empty log.
func (e End) Oldest() ledger.Version {
	if len(e.segments) == 0 {
		return 0
	}
	return e.segments[0].first
}

// Slot returns the chain's tip after the newest record.
func (e End) Slot() ledger.Slot { return e.slot }

// Torn reports whether bytes follow the newest whole commit: a crash left them, or a commit is being written.
func (e End) Torn() bool { return e.torn > 0 }

// String describes how the log ends.
func (e End) String() string {
	if len(e.segments) == 0 {
		return "the log is empty"
	}
	g := &e.segments[len(e.segments)-1]
	s := fmt.Sprintf("the log ends after record %d, at slot %d, in %s at byte %d", e.version, e.slot, g.name, e.offset)
	if e.Torn() {
		s += fmt.Sprintf("; a crash left %d bytes after it (%s)", e.torn, e.reason)
	}
	return s
}
