package stream

import (
	"sync"

	"ledgerd/httpd/budget"
)

// batchBytes is the most that one write carries from an outbox or a backlog.
const batchBytes = 64 << 10

// batches are buffers in which a writer gathers frames, so that one call writes many.
var batches = sync.Pool{New: func() any {
	b := make([]byte, 0, batchBytes)
	return &b
}}

// newBatch returns an empty buffer of batchBytes, to be given back with freeBatch. It is counted and
// never refused: no writer has two.
func newBatch(memory *budget.Part) *[]byte {
	memory.Hold(batchBytes)
	return batches.Get().(*[]byte)
}

func freeBatch(memory *budget.Part, b *[]byte) {
	memory.Hold(-batchBytes)
	batches.Put(b)
}
