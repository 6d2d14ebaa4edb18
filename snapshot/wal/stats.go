package wal

import (
	"sync/atomic"

	"ledgerd/engine/ledger"
)

// Stats is what the log tells about itself. Each value is right by itself; together they
// may be a commit apart.
type Stats struct {
	Segments    int
	Bytes       int64       // of all segments, as written, and of what was cut off them and kept aside
	Position    Position    // behind the newest record
	DurableSlot ledger.Slot // the chain's tip after the newest record that survives a crash
}

// counters hold what Stats returns.
type counters struct {
	segments, bytes       atomic.Int64
	position, durableSlot atomic.Uint64
}

// publishLocked brings the counters up to date.
func (l *Log) publishLocked() {
	c := &l.stats
	c.segments.Store(int64(len(l.segments)))
	c.bytes.Store(l.bytes)
	c.position.Store(uint64(l.state.position))
	c.durableSlot.Store(uint64(l.durable.slot))
}

// Stats returns what the log tells about itself. Any goroutine may call it; it never waits for
// the disk.
func (l *Log) Stats() Stats {
	c := &l.stats
	return Stats{
		Segments:    int(c.segments.Load()),
		Bytes:       c.bytes.Load(),
		Position:    Position(c.position.Load()),
		DurableSlot: ledger.Slot(c.durableSlot.Load()),
	}
}
