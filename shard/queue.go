package shard

// position is the number of a value of a queue in the order of arrival. It wraps around: the number after
// 2^32-1 is 1; 0 means none. Two positions of one queue are compared by their distance from
// the oldest.
type position uint32

const (
	queueBits = 9
	// queueChunk is how many values of a queue get memory at once.
	queueChunk = 1 << queueBits
)

// queue is a first-in-first-out queue of values without pointers. Values never move and their memory
// is never reused, so a reader of a frozen copy, or of a pointer to a value, may go on reading while the owner
// adds and drops values. The garbage collector frees a chunk when nothing refers to it.
type queue[T any] struct {
	chunks      []*[queueChunk]T // a ring: chunk n is at n modulo its length, a power of two
	oldest      position         // the oldest value, if count > 0
	next, count uint32           // the position of the next value; how many values there are
}

func (q *queue[T]) at(p position) *T {
	return &q.chunks[int(p>>queueBits)&(len(q.chunks)-1)][p%queueChunk]
}

// holds reports whether the value at p is not yet dropped. At most 2^32-1 values may have been added
// since p.
func (q *queue[T]) holds(p position) bool {
	return p != 0 && q.count != 0 && uint32(p)-uint32(q.oldest) < q.next-uint32(q.oldest)
}

// add adds an empty value at the end and returns it.
func (q *queue[T]) add() (position, *T) {
	if q.next == 0 {
		q.next = 1
	}
	p := position(q.next)
	if q.count == 0 {
		q.oldest = p
	}
	chunk := q.reach(p)
	q.next++
	q.count++
	return p, &chunk[p%queueChunk]
}

// reach returns the chunk of the next position and allocates it if necessary.
func (q *queue[T]) reach(p position) *[queueChunk]T {
	const numbers = 1 << (32 - queueBits)
	first := int(q.oldest >> queueBits)
	if n := (int(p>>queueBits)-first)&(numbers-1) + 1; n > len(q.chunks) {
		ring := make([]*[queueChunk]T, max(1, 2*len(q.chunks)))
		for i := range q.chunks {
			ring[(first+i)&(len(ring)-1)] = q.chunks[(first+i)&(len(q.chunks)-1)]
		}
		q.chunks = ring
	}
	chunk := &q.chunks[int(p>>queueBits)&(len(q.chunks)-1)]
	if *chunk == nil {
		*chunk = new([queueChunk]T)
	}
	return *chunk
}

// drop removes the oldest value; there must be one.
func (q *queue[T]) drop() {
	was := q.oldest
	q.count--
	if q.oldest++; q.oldest == 0 {
		q.oldest = 1
	}
	if was>>queueBits != q.oldest>>queueBits {
		q.chunks[int(was>>queueBits)&(len(q.chunks)-1)] = nil
	}
}

// nth returns the position n after the oldest; it may be the one past the newest.
func (q *queue[T]) nth(n int) position {
	p := q.oldest + position(n)
	if p < q.oldest {
		p++ // position 0 is not used
	}
	return p
}

// freeze returns a copy of q for another goroutine to read.
func (q *queue[T]) freeze() queue[T] {
	c := *q
	c.chunks = append(c.chunks[:0:0], q.chunks...)
	return c
}
