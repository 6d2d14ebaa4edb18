package httpd

import (
	"slices"
	"sync"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/budget"
)

const (
	// maxKeptBytes is the longest buffer that a request keeps for the next exchange.
	maxKeptBytes = 16 << 10
	// maxPooledBytes is the longest buffer that is pooled: lists of the usual length have room in
	// it. The pool lets go of those that nobody asks for.
	maxPooledBytes = 1 << 20
)

// answers bounds the memory of all answers that are longer than maxKeptBytes, from before the
// ledger is asked until the client has taken the last byte: a client that reads slowly holds its
// answer, and one connection may hold one. Without the pool, making room for lists costs about as
// much as their text.
type answers struct {
	*budget.Part
	pool sync.Pool // of *[]byte, longer than maxKeptBytes
}

// reserve makes sure of so many bytes for the answer before the ledger is asked. ErrUnavailable
// says that other answers take all there is.
func (r *request) reserve(bytes int) error {
	if r.server.answers.Take(bytes) {
		r.reserved = bytes
		return nil
	}
	r.server.meters.overloaded.Add(1)
	return ledger.ErrUnavailable
}

// holdBytes corrects what is reserved once the length of the answer is known: that it exceeds the
// estimate is no reason to drop it any more.
func (r *request) holdBytes(bytes int) {
	if bytes != r.reserved {
		r.server.answers.Hold(bytes - r.reserved)
		r.reserved = bytes
	}
}

// longBytes returns what a buffer counts for in the budget of answers.
func longBytes(buffer []byte) int {
	if cap(buffer) <= maxKeptBytes {
		return 0
	}
	return cap(buffer)
}

// grow makes room in the empty body for a list whose records take about so many bytes.
func (r *request) grow(n int) {
	n += 512 // more than a list takes besides its records
	if n <= maxKeptBytes {
		r.body = slices.Grow(r.body, n)
	} else if b, ok := r.server.answers.pool.Get().(*[]byte); ok && cap(*b) >= n {
		r.body = (*b)[:0]
	} else {
		r.body = make([]byte, 0, n)
	}
}

// reuse returns the buffer, emptied, if a request may keep it. A longer one goes to the pool.
func (a *answers) reuse(buffer []byte) []byte {
	if longBytes(buffer) == 0 {
		return buffer[:0]
	}
	if cap(buffer) <= maxPooledBytes {
		pooled := buffer // so that only this allocates
		a.pool.Put(&pooled)
	}
	return nil
}
