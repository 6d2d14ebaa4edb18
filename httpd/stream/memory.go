package stream

import (
	"sync"
	"sync/atomic"
)

// memory counts the bytes of all that waits for sockets, all of them together: packets with
// their overhead, buffers that are being written, snapshots while they are made, backlogs from
// the log, and emissions held back.
type memory struct {
	limit int64
	used  atomic.Int64
}

// allows reports whether a connection that holds so many bytes itself may hold them. It may hold
// as much as is left for others: so whatever the large ones hold, a small one finds room, and
// the one that asks for more than that is the one that is refused.
func (m *memory) allows(own int) bool { return int64(own) <= m.limit-m.used.Load() }

// reserve takes so many bytes; false if there is no room for them.
func (m *memory) reserve(bytes int) bool {
	if m.used.Add(int64(bytes)) <= m.limit {
		return true
	}
	m.release(bytes)
	return false
}

func (m *memory) release(bytes int) { m.used.Add(int64(-bytes)) }

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
	m.used.Add(batchBytes)
	return batches.Get().(*[]byte)
}

func (m *memory) freeBatch(b *[]byte) {
	m.release(batchBytes)
	batches.Put(b)
}
