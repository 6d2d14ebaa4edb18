package shard

import (
	"slices"
	"unsafe"
)

// position is the number of a value of a queue in the order of arrival. It wraps around: the number after
// 2^32-1 is 1; 0 means none. Two positions of one queue are compared by their distance from
// the oldest.
type position uint32

const (
	queueBits = 9
	// queueChunk is how many values of a queue get memory at once.
	queueChunk = 1 << queueBits
)

// queue is a first-in-first-out queue of values. Values never move and their memory
// is never reused, so a reader of a frozen copy, or of a pointer to a value, may go on reading while the owner
// adds and drops values. The garbage collector frees a chunk when nothing refers to it.
type queue[T any] struct {
	chunks []*[queueChunk]T // from that of the oldest value on
	oldest position         // the oldest value, if count > 0
	next   position         // of the next value
	count  int
}

// chunkOf returns the index in chunks of the chunk of a position.
func (q *queue[T]) chunkOf(p position) int {
	return int((p>>queueBits - q.oldest>>queueBits) % (1 << (32 - queueBits)))
}

func (q *queue[T]) at(p position) *T { return &q.chunks[q.chunkOf(p)][p%queueChunk] }

// holds reports whether the value at p is not yet dropped. At most 2^32-1 values may have been added
// since p.
func (q *queue[T]) holds(p position) bool {
	return p != 0 && q.count != 0 && p-q.oldest < q.next-q.oldest
}

// add adds an empty value at the end and returns it.
func (q *queue[T]) add() (position, *T) {
	if q.next == 0 {
		q.next = 1
	}
	p := q.next
	if q.count == 0 {
		q.oldest = p
	}
	if q.chunkOf(p) == len(q.chunks) {
		q.chunks = append(q.chunks, new([queueChunk]T))
	}
	q.next++
	q.count++
	return p, q.at(p)
}

// drop removes the oldest value; there must be one.
func (q *queue[T]) drop() {
	was := q.oldest
	q.count--
	q.oldest = q.after(was)
	if was>>queueBits != q.oldest>>queueBits {
		q.chunks[0] = nil
		q.chunks = q.chunks[1:]
	}
}

// sizeBytes returns how much memory the values take, counted in whole chunks.
func (q *queue[T]) sizeBytes() int { return len(q.chunks) * int(unsafe.Sizeof([queueChunk]T{})) }

// nth returns the position n after the oldest; it may be the one past the newest.
func (q *queue[T]) nth(n int) position {
	p := q.oldest + position(n)
	if p < q.oldest {
		p++ // position 0 is not used
	}
	return p
}

// after returns the position after p.
func (q *queue[T]) after(p position) position { return max(p+1, 1) }

// freeze returns a copy of q for another goroutine to read.
func (q *queue[T]) freeze() queue[T] {
	c := *q
	c.chunks = slices.Clone(q.chunks)
	return c
}
