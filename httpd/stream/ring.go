package stream

import (
	"sync/atomic"

	"ledgerd/engine/ledger"
)

const (
	blockBytes = 64 << 10
	blockBits  = 32 // of an offset in a block
)

// ring holds the newest frames of one level in one form, encoded once for all that follow it.
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
	head  atomic.Pointer[position]

	// The hub's lock guards the rest.

	open      *block
	tail      batch  // what the open block holds, with what is not published yet; its tally is of all blocks
	bytes     int    // of the blocks in slots
	oldest    uint64 // the number of the first of them
	moved     bool   // the head, since the followers were woken
	followers set[*subscriber]
	users     set[*subscriber] // connections that ever followed it and are still there
}

// block is a part of a ring. Frames never lie across two.
type block struct {
	number uint64
	data   []byte   // of blockBytes, unless one frame takes more
	end    position // set before the head goes on to the next block
}

// position is where a reader of a ring stands, and what lies before it.
type position struct {
	at uint64 // the number of the block, shifted by blockBits, and bytes in it
	tally
}

// number returns the block that the position is in.
func (p position) number() uint64 { return p.at >> blockBits }

// offset returns how far into its block a position is.
func (p position) offset() uint64 { return p.at & (1<<blockBits - 1) }

// newRing returns an empty ring for at least so many bytes of frames, which come after a seq.
func newRing(f form, bytes int, seq ledger.Seq) *ring {
	r := &ring{
		form: f, followers: make(set[*subscriber]), users: make(set[*subscriber]),
		// The room at the end of a block that no frame fits in does not count, nor does the open block.
		slots: make([]atomic.Pointer[block], bytes/(blockBytes-maxFrameBytes)+2),
	}
	r.tail.seq = seq
	r.begin(0, blockBytes)
	head := r.end()
	r.head.Store(&head)
	return r
}

// begin goes on in an empty block. Where some are large, the oldest are dropped before their turn.
func (r *ring) begin(number uint64, bytes int) {
	b := &block{number: number, data: make([]byte, bytes)}
	r.open, r.tail.data = b, b.data[:0]
	r.bytes += bytes
	r.put(number, b)
	for r.bytes > len(r.slots)*blockBytes && r.oldest < number {
		r.put(r.oldest, nil)
	}
}

// put puts a block, nil for none, where the block of a number belongs.
func (r *ring) put(number uint64, b *block) {
	if was := r.slots[number%uint64(len(r.slots))].Swap(b); was != nil {
		r.bytes -= len(was.data)
		r.oldest = was.number + 1
	}
}

// end returns where tail ends.
func (r *ring) end() position {
	return position{r.open.number<<blockBits + uint64(len(r.tail.data)), r.tail.tally}
}

// append appends the frames of an emission. The followers are not woken yet.
func (r *ring) append(e *emission) {
	before := r.tail.frames
	for part := opening; part <= e.ending(); part++ {
		if n := e.frameBytes(r.form, part); !r.tail.hasRoom(n) {
			r.open.end = r.end()
			r.begin(r.open.number+1, max(blockBytes, n))
		}
		r.tail.take(e.appendPart(r.tail.data, r.form, part), e, part)
	}
	if r.tail.frames != before {
		head := r.end()
		r.head.Store(&head)
		r.moved = true
	}
}

// wake wakes the writers of the followers, if there is anything for them.
func (r *ring) wake() {
	if !r.moved {
		return
	}
	r.moved = false
	for s := range r.followers {
		s.outbox.wake()
	}
}

// newest returns a cursor at the head.
func (r *ring) newest() cursor { return r.cursorAt(r.end()) }

// cursorAt returns a cursor at a position that was a head.
func (r *ring) cursorAt(p position) cursor {
	return cursor{ring: r, block: r.block(p.number()), position: p}
}

// block returns the block of a number, which has begun; nil if it is gone.
func (r *ring) block(number uint64) *block {
	if b := r.slots[number%uint64(len(r.slots))].Load(); b != nil && b.number == number {
		return b
	}
	return nil
}

// cursor is a reader of a ring, or of none.
type cursor struct {
	ring  *ring
	block *block // that it stands in; nil: that was gone before
	position
}

// head returns where the ring ends now.
func (c *cursor) head() position {
	if c.ring == nil {
		return position{}
	}
	return *c.ring.head.Load()
}

// next returns whole frames up to a limit, which is a head or was one, as far as they lie in
// one block, and where they end; nothing when the cursor stands there. Not ok means that the
// cursor was lapped.
func (c *cursor) next(limit position) (frames []byte, to position, ok bool) {
	for c.at < limit.at && c.block != nil {
		to = limit
		if limit.number() != c.number() {
			to = c.block.end
		}
		if c.at < to.at {
			return c.block.data[c.offset():to.offset()], to, true
		}
		if c.block = c.ring.block(c.number() + 1); c.block != nil {
			c.at = c.block.number << blockBits
		}
	}
	return nil, c.position, c.at >= limit.at
}

// lapped reports whether frames after the cursor's block, or in it, are gone.
func (c *cursor) lapped() bool {
	return c.ring != nil && c.head().number() > c.number() && (c.block == nil || c.ring.block(c.number()+1) == nil)
}

// lagsBy reports whether the cursor is further from its ring's head than one part of share of the ring.
func (c *cursor) lagsBy(share int) bool {
	return c.ring != nil && c.head().number()-c.number() > uint64(len(c.ring.slots)/share)
}
