package wal

import "ledgerd/engine/ledger"

// Stats are the figures of a log.
type Stats struct {
	Segments    int
	Bytes       int64       // of all segments, as written, and of what was cut off them and kept aside
	Position    Position    // after the newest record
	DurableSlot ledger.Slot // the chain's tip after the newest record that survives a crash
}

func statsOf(segments []segment, newest, durable state) Stats {
	s := Stats{Segments: len(segments), Position: newest.position, DurableSlot: durable.slot}
	for i := range segments {
		s.Bytes += segments[i].size + segments[i].aside
	}
	return s
}

func (l *Log) publishLocked() {
	s := statsOf(l.segments, l.state, l.durable)
	l.stats.Store(&s)
}

// Stats returns the figures after the newest commit or sync. Any goroutine may call it; it never waits for
// the disk.
func (l *Log) Stats() Stats { return *l.stats.Load() }
