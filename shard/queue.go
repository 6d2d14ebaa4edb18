package shard

// position names one value of a queue by its place in the order of arrival, which goes round:
// after 2^32-1 comes 1. 0 is none. Two positions that were held at one time are
// compared by how far they are from the oldest.
type position uint32

const (
	queueBits = 9
	// queueChunk is how many values of a queue get memory at once.
	queueChunk = 1 << queueBits
)

// queue holds values without pointers in the order in which they came, and lets go of them in that
// order. They never move and no place is used again, so that whoever has a copy, or a pointer
// to one, reads on while the owner adds and drops; the garbage collector frees a chunk once
// nobody has it.
type queue[T any] struct {
	chunks     []*[queueChunk]T // a ring: chunk number n is at n modulo its length, a power of two
	oldest     position         // the oldest value, where there is one
	next, held uint32           // the position that the next value gets; how many values there are
}

func (q *queue[T]) at(p position) *T {
	return &q.chunks[int(p>>queueBits)&(len(q.chunks)-1)][p%queueChunk]
}

// holds reports whether the value of a position was not dropped yet. It was added not long
// ago: less than 2^32 values since.
func (q *queue[T]) holds(p position) bool {
	return p != 0 && q.held != 0 && uint32(p)-uint32(q.oldest) < q.next-uint32(q.oldest)
}

// add adds an empty value.
func (q *queue[T]) add() (position, *T) {
	if q.next == 0 {
		q.next = 1
	}
	p := position(q.next)
	if q.held == 0 {
		q.oldest = p
	}
	chunk := q.reach(p)
	q.next++
	q.held++
	return p, &chunk[p%queueChunk]
}

// reach returns the chunk of a position, which is the next.
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

// drop lets go of the oldest value; there must be one.
func (q *queue[T]) drop() {
	was := q.oldest
	q.held--
	if q.oldest++; q.oldest == 0 {
		q.oldest = 1
	}
	if was>>queueBits != q.oldest>>queueBits {
		q.chunks[int(was>>queueBits)&(len(q.chunks)-1)] = nil
	}
}

// nth returns the position of the nth value from the oldest on, 0 being that itself; it may be
// the one past the newest.
func (q *queue[T]) nth(n int) position {
	p := q.oldest + position(n)
	if p < q.oldest {
		p++ // 0 is none
	}
	return p
}

// freeze returns a queue with what q holds now, for others to read.
func (q *queue[T]) freeze() queue[T] {
	c := *q
	c.chunks = append(c.chunks[:0:0], q.chunks...)
	return c
}
