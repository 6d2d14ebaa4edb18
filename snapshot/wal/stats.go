package wal

import "ledgerd/engine/ledger"

// Stats are the figures of a log.
type Stats struct {
	Segments    int
	Bytes       int64       // of all segments, as written, and of what was cut off them and kept aside
	Torn        int64       // bytes that a crash had left after the newest whole commit when the log was opened
	Position    Position    // after the newest record
	DurableSlot ledger.Slot // the chain's tip after the newest record that survives a crash
}

func (l *Log) publishLocked() {
	s := &Stats{Segments: len(l.segments), Torn: l.torn, Position: l.state.position, DurableSlot: l.durable.slot}
	for i := range l.segments {
		s.Bytes += l.segments[i].size + l.segments[i].aside
	}
	l.stats.Store(s)
}

// Stats returns the figures after the newest commit or sync. Any goroutine may call it; it never waits for
// the disk.
func (l *Log) Stats() Stats { return *l.stats.Load() }
