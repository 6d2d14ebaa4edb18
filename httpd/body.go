package httpd

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"

	"ledgerd/engine/ledger"
)

const (
	// maxKeptBytes is the largest buffer a request or a response keeps for the next exchange.
	maxKeptBytes = 16 << 10
	// maxLentBytes is the largest buffer of a long body that is used again: lists of the usual
	// length have room in it. The pool lets go of those that nobody asks for.
	maxLentBytes = 1 << 20
)

// answers bounds the memory of all answers that are longer than maxKeptBytes, from before the
// ledger is asked until the client has taken the last byte: a client that reads slowly holds its
// answer, and one connection may hold one.
type answers struct {
	limit int64 // in bytes
	used  atomic.Int64
	pool  sync.Pool // of *lentBody
}

// take reserves bytes; it is not ok when they are not to be had.
func (a *answers) take(bytes int) (ok bool) {
	if a.used.Add(int64(bytes)) <= a.limit {
		return true
	}
	a.give(bytes)
	return false
}

func (a *answers) give(bytes int) { a.used.Add(-int64(bytes)) }

// lentBody is a body that is too long to be copied into the response, which has it written from
// where it is and then closes it. Without that, making room for lists costs about as
// much as their text.
type lentBody struct {
	bytes.Reader
	answers  *answers
	buffer   []byte
	reserved int
}

// lend returns the body of a response; what is reserved for it is given back when it is closed.
func (a *answers) lend(body []byte, reserved int) *lentBody {
	b := &lentBody{answers: a, buffer: body, reserved: reserved}
	b.Reset(body)
	return b
}

// recycle lets a buffer be used again.
func (a *answers) recycle(buffer []byte) {
	if cap(buffer) <= maxLentBytes {
		a.pool.Put(&lentBody{buffer: buffer})
	}
}

// Close gives back what is reserved. fasthttp calls it once.
func (b *lentBody) Close() error {
	b.answers.give(b.reserved)
	b.answers.recycle(b.buffer)
	b.reserved, b.buffer = 0, nil
	return nil
}

// reserve makes sure that so many bytes are reserved for the answer. ErrUnavailable says that
// other answers take all there is.
func (r *request) reserve(bytes int) error {
	if more := bytes - r.reserved; more > 0 {
		if !r.server.answers.take(more) {
			r.server.meters.overloaded.Add(1)
			return ledger.ErrUnavailable
		}
		r.reserved = bytes
	}
	return nil
}

// reserveAtLeast corrects what is reserved once the length of the answer is known: that it exceeds
// the estimate is no reason to drop it any more.
func (r *request) reserveAtLeast(bytes int) {
	r.server.answers.used.Add(int64(bytes - r.reserved))
	r.reserved = bytes
}

// grow makes room in the body for a list whose records take about so many bytes.
func (r *request) grow(n int) {
	const besides = 512 // more than a list takes besides its records
	n += len(r.body) + besides
	if n <= maxKeptBytes {
		r.body = slices.Grow(r.body, n)
		return
	}
	buffer := []byte(nil)
	if b, ok := r.server.answers.pool.Get().(*lentBody); ok && cap(b.buffer) >= n {
		buffer = b.buffer[:0]
	} else {
		buffer = make([]byte, 0, n)
	}
	r.body = append(buffer, r.body...)
}
