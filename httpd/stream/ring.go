package stream

import (
	"sync/atomic"

	"ledgerd/engine/ledger"
)

const (
	blockBits  = 16
	blockBytes = 1 << blockBits
)

// ring holds the newest frames of one level in one form, encoded once for all who follow it.
//
// It is a row of blocks. The publisher appends to the newest under the hub's lock and moves
// the head when an emission is whole, so heads are frame boundaries. What lies before the
// head never changes again: a reader needs no lock, and can neither see a frame in part nor
// race with the publisher. A slot of the row forgets its block when a newer one takes its
// place, and a reader that then looks for it knows by the number that it was lapped. The
// block a reader stands in is kept by the reader alone.
type ring struct {
	form  form
	slots []atomic.Pointer[block] // block n is in slots[n % len(slots)]
	head  atomic.Pointer[place]

	// The hub's lock guards the rest.

	open      *block
	tail      []byte // what the open block holds, with what is not published yet
	end       place  // where tail ends
	moved     bool   // the head, since the followers were woken
	followers map[*subscriber]struct{}
	users     int // connections that ever followed it and are still there
}

// block is a part of a ring. Frames never lie across two.
type block struct {
	number uint64
	data   [blockBytes]byte
	end    place // set before the head goes on to the next block
}

// place is where a reader of a ring stands, and what it was told up to there.
type place struct {
	at     uint64 // the number of the block, shifted by blockBits, and bytes in it
	frames uint64
	seq    ledger.Seq // the newest; 0 while nothing was numbered
}

// number returns which block a place is in. Blocks never are full to the last byte.
func (p place) number() uint64 { return p.at >> blockBits }

// offset returns how far into its block a place is.
func (p place) offset() uint64 { return p.at & (blockBytes - 1) }

// newRing returns an empty ring for at least so many bytes of frames, which come after a seq.
func newRing(f form, bytes int, seq ledger.Seq) *ring {
	r := &ring{
		form: f, followers: make(map[*subscriber]struct{}),
		// The room at the end of a block that no frame fits in does not count, nor does the open block.
		slots: make([]atomic.Pointer[block], bytes/(blockBytes-maxFrameBytes)+2),
	}
	r.begin(new(block))
	r.end.seq = seq
	head := r.end
	r.head.Store(&head)
	return r
}

// begin goes on in an empty block.
func (r *ring) begin(b *block) {
	r.open, r.tail = b, b.data[:0]
	r.end.at = b.number << blockBits
	r.slots[b.number%uint64(len(r.slots))].Store(b)
}

// room returns where the next frame is to be appended.
func (r *ring) room() []byte {
	if blockBytes-len(r.tail) <= maxFrameBytes {
		r.open.end = r.end
		r.begin(&block{number: r.open.number + 1})
	}
	return r.tail
}

// count takes in a frame that was appended to room, if there was one.
func (r *ring) count(tail []byte, seq ledger.Seq) {
	if len(tail) == len(r.tail) {
		return
	}
	r.tail = tail
	r.end.at = r.open.number<<blockBits + uint64(len(tail))
	r.end.frames++
	r.end.seq = max(r.end.seq, seq)
}

// tell appends the frames of an emission. Nobody is woken.
func (r *ring) tell(e *emission) {
	if r.form == extended {
		r.count(e.appendOpening(r.room()), 0)
	}
	for i := range e.updates {
		r.count(e.appendUpdate(r.room(), r.form, i), e.seq(i))
	}
	if r.form == extended {
		r.count(e.appendEnding(r.room()), e.lastSeq)
	}
	if end := r.end; end != *r.head.Load() {
		r.head.Store(&end)
		r.moved = true
	}
}

// wake wakes the writers, if there is anything for them.
func (r *ring) wake() {
	if !r.moved {
		return
	}
	r.moved = false
	for s := range r.followers {
		s.outbox.wakeUp()
	}
}

// newest returns a cursor at the head.
func (r *ring) newest() *cursor { return &cursor{ring: r, block: r.open, place: r.end} }

// cursor is a reader of a ring, or of none.
type cursor struct {
	ring  *ring
	block *block
	place
}

// head returns where the ring ends now.
func (c *cursor) head() place {
	if c.ring == nil {
		return place{}
	}
	return *c.ring.head.Load()
}

// next returns whole frames up to a limit, which is a head or was one, as far as they lie in
// one block, and where they end; nothing when the cursor stands there. Not ok is who was
// lapped.
func (c *cursor) next(limit place) (frames []byte, to place, ok bool) {
	for c.at < limit.at {
		to = limit
		if limit.number() != c.block.number {
			to = c.block.end
		}
		if c.at < to.at {
			return c.block.data[c.offset():to.offset()], to, true
		}
		number := c.block.number + 1
		next := c.ring.slots[number%uint64(len(c.ring.slots))].Load()
		if next.number != number {
			return nil, c.place, false
		}
		c.block, c.at = next, number<<blockBits
	}
	return nil, c.place, true
}

// lapped reports whether the frames after the cursor's block are gone.
func (c *cursor) lapped() bool {
	return c.ring != nil && c.head().number() > c.block.number+uint64(len(c.ring.slots))
}
