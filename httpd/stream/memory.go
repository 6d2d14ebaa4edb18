package stream

import (
	"sync"
	"sync/atomic"
)

// memory counts the bytes of all that waits for sockets, all of them together: packets with
// their overhead, buffers that are being written, snapshots while they are made, and backlogs of emissions
// that need not be kept for others.
type memory struct {
	limit int64
	used  atomic.Int64
}

// ample is the part of the memory up to which every connection may hold what its own bounds allow. What
// is large and begins anew, such as a snapshot, begins only within it: so those that have begun
// before find room to go on.
func (m *memory) ample() int64 { return m.limit / 4 * 3 }

// allows reports whether a connection that holds so many bytes itself may hold them. Where memory is
// not ample, it may hold as much as is left for others: so whatever the large ones hold, a small one
// finds room, and the one that asks for more than that is the one that is refused.
func (m *memory) allows(own int) bool {
	used := m.used.Load()
	return used <= m.ample() || int64(own) <= m.limit-used
}

// reserve takes so many bytes for something that begins; false if there is no room for them.
func (m *memory) reserve(bytes int) bool {
	if m.used.Add(int64(bytes)) <= m.ample() {
		return true
	}
	m.release(bytes)
	return false
}

// hold takes so many bytes for something that has begun.
func (m *memory) hold(bytes int) { m.used.Add(int64(bytes)) }

func (m *memory) release(bytes int) { m.hold(-bytes) }

// batchBytes is the most that one write carries from an outbox or a backlog.
const batchBytes = 64 << 10

// batches are buffers in which a writer gathers frames, so that one call writes many.
var batches = sync.Pool{New: func() any {
	b := make([]byte, 0, batchBytes)
	return &b
}}

// batch returns an empty buffer of batchBytes, to be given back with freeBatch. It is counted and
// never refused: no writer has two.
func (m *memory) batch() *[]byte {
	m.hold(batchBytes)
	return batches.Get().(*[]byte)
}

func (m *memory) freeBatch(b *[]byte) {
	m.release(batchBytes)
	batches.Put(b)
}
