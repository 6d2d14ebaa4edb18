package httpd

import (
	"math/bits"
	"slices"
	"sync"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/budget"
)

const (
	// maxKeptBytes is the longest buffer that a request keeps for the next exchange.
	maxKeptBytes = 16 << 10
	// minPooledBytes is the shortest buffer that is pooled, and maxPooledBytes the longest, in which lists of the usual length fit.
	// The pools free buffers that are not used.
	minPooledBytes = 2 * maxKeptBytes
	maxPooledBytes = minPooledBytes << poolDoublings
	poolDoublings  = 5
)

// answers bounds the memory of all answers that are longer than maxKeptBytes, from before the
// ledger is asked until the client has taken the last byte: a client that reads slowly holds its
// answer, and one connection may hold one. Without the pools, making room for lists costs about as
// much as their text.
type answers struct {
	*budget.Part
	pools [poolDoublings + 1]sync.Pool // of *[]byte, empty; in pool i with room for at least minPooledBytes<<i
	lists sync.Pool                    // of *[]ledger.Account, empty
}

// reserve reserves memory for the answer before the ledger is queried. If the query waits for a slot, reserve waits for that first, so
// that a request that merely waits holds no memory.
func (r *request) reserve(bytes int) error {
	if q := &r.params.query; q.Wait > 0 {
		if err := r.server.config.Ledger.Await(*q); err != nil {
			return err
		}
		q.Wait = 0
	}
	return r.Reserve(bytes)
}

// Reserve takes further bytes from the budget for answers. It returns ErrUnavailable if other answers, or those of this client, take
// all of the budget. A short answer takes nothing and is never refused.
func (x *Exchange) Reserve(bytes int) error {
	if bytes <= 0 {
		return nil
	}
	take := x.server.answers.Take
	if !x.client.Exempt {
		take = func(bytes int) bool { return x.server.answers.TakeFor(x.client.Key, bytes) }
	}
	if take(bytes) {
		x.reserved += bytes
		return nil
	}
	x.lacked = true
	return ledger.ErrUnavailable
}

// Fits reports whether an answer may ever have so many bytes.
func (x *Exchange) Fits(bytes int) bool { return x.server.answers.Fits(bytes) }

// Extend returns answer, which must come from Room or Extend, with room for so many more bytes, after reserving memory for them. To
// bound the copies, it grows a long answer by a quarter at least, and doubles the capacity of a short one, which takes nothing from
// the budget.
func (x *Exchange) Extend(answer []byte, bytes int) ([]byte, error) {
	if cap(answer)-len(answer) >= bytes {
		return answer, nil
	}
	need := len(answer) + bytes
	if need <= maxKeptBytes {
		need = max(need, min(2*cap(answer), maxKeptBytes))
	} else {
		need = max(need, cap(answer)+cap(answer)/4)
	}
	more := longRoom(need) - longBytes(answer)
	if err := x.Reserve(more); err != nil {
		return answer, err
	}
	longer := append(x.server.answers.grow(nil, need), answer...)
	x.holdBytes(x.reserved - more + longBytes(longer) - longBytes(answer))
	x.body = longer[:0] // the response to a panic is made in it
	x.server.answers.reuse(answer)
	return longer, nil
}

// Foresee is Extend for memory that is only expected to be needed: without it, Foresee returns the answer as it is, and the request is
// not counted as refused.
func (x *Exchange) Foresee(answer []byte, bytes int) []byte {
	lacked := x.lacked
	longer, err := x.Extend(answer, bytes)
	if err != nil {
		x.lacked = lacked
	}
	return longer
}

// Settle corrects what is reserved to the capacity of the answer made so far, plus the bytes that Keep names.
func (x *Exchange) Settle(answer []byte) { x.holdBytes(longBytes(answer) + x.kept) }

// holdBytes corrects what is reserved once the length of the answer is known. An answer that exceeds the
// estimate is not dropped any more.
func (x *Exchange) holdBytes(bytes int) {
	switch more := bytes - x.reserved; {
	case more == 0:
	case x.client.Exempt:
		x.server.answers.Hold(more)
	default:
		x.server.answers.HoldFor(x.client.Key, more)
	}
	x.reserved = bytes
}

// longBytes returns what a buffer counts for in the budget of answers.
func longBytes(buffer []byte) int {
	if cap(buffer) <= maxKeptBytes {
		return 0
	}
	return cap(buffer)
}

// longRoom returns what a buffer that is grown for n bytes counts for at least.
func longRoom(n int) int {
	switch {
	case n <= maxKeptBytes:
		return 0
	case n > maxPooledBytes:
		return n
	}
	return minPooledBytes << poolOf(n)
}

// poolOf returns the pool of buffers that have room for so many bytes.
func poolOf(n int) int { return bits.Len(uint(n-1) / minPooledBytes) }

// grow makes room in the empty body for a list whose records take about so many bytes.
func (x *Exchange) grow(n int) {
	x.body = x.server.answers.grow(x.body, n+512) // more than a list takes besides its records
}

// grow returns an empty buffer with room for n bytes: the given one if that has the room.
func (a *answers) grow(buffer []byte, n int) []byte {
	if n <= maxKeptBytes || n > maxPooledBytes {
		return slices.Grow(buffer, n)
	}
	pool := poolOf(n)
	if b, ok := a.pools[pool].Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 0, minPooledBytes<<pool)
}

// reuse returns the buffer, emptied, if a request may keep it. A longer one goes to its pool.
func (a *answers) reuse(buffer []byte) []byte {
	if longBytes(buffer) == 0 {
		return buffer[:0]
	}
	if n := cap(buffer); n >= minPooledBytes && n <= maxPooledBytes {
		pooled := buffer[:0] // so that only this allocates
		a.pools[bits.Len(uint(n/minPooledBytes))-1].Put(&pooled)
	}
	return nil
}

// list returns room for the accounts of an answer, to be given back with reuseList.
func (a *answers) list() []ledger.Account {
	if l, ok := a.lists.Get().(*[]ledger.Account); ok {
		return *l
	}
	return nil
}

// reuseList takes back room that list returned, or what it became. Nothing may use the accounts any more.
func (a *answers) reuseList(l []ledger.Account) {
	clear(l) // what the accounts point to can be freed
	l = l[:0]
	a.lists.Put(&l)
}
