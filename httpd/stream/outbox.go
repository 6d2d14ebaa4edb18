package stream

import (
	"slices"
	"sync"
	"sync/atomic"

	"ledgerd/engine/ledger"
)

const (
	// maxPieces bounds how many pieces wait for one socket. With the bound on bytes it
	// bounds what a connection can pin.
	maxPieces = 1 << 15
	// takeBytes is about how much the writer takes at once. What it took is beyond recall,
	// so it bounds how long a slow consumer is written to before it is told so.
	takeBytes = 1 << 20
)

// outbox holds what one connection is told beside the ring it follows, in order, until the
// writer takes it.
type outbox struct {
	limitBytes int
	conflates  bool // when it is full, rather than that the connection ends; never changes
	unshared   *unshared
	wake       func() // calls the writer, never waits; nil: there is none

	mu     sync.Mutex
	pieces []piece
	bytes  int
	ending *closing // set once: nothing is accepted after
}

// unshared counts the bytes that wait in all outboxes and were made for one connection
// alone. Shared pieces are in memory once, however many wait for them.
type unshared struct {
	limitBytes int64
	bytes      atomic.Int64
}

func newOutbox(limitBytes int, u *unshared) *outbox {
	return &outbox{limitBytes: limitBytes, unshared: u}
}

// hasRoom reports whether unshared pieces may be put, as far as all connections go.
func (o *outbox) hasRoom(pieces []piece) bool {
	more := int64(0)
	for _, p := range pieces {
		more += int64(len(p.data))
	}
	return o.unshared.bytes.Load()+more <= o.unshared.limitBytes
}

// countLocked notes that a piece came (1) or went (-1).
func (o *outbox) countLocked(p piece, sign int) {
	o.bytes += sign * len(p.data)
	if p.unshared {
		o.unshared.bytes.Add(int64(sign * len(p.data)))
	}
}

// dropLocked forgets what waits.
func (o *outbox) dropLocked() {
	for _, p := range o.pieces {
		o.countLocked(p, -1)
	}
	o.pieces = nil
}

// discard forgets what waits, when the connection is gone.
func (o *outbox) discard() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.endLocked(endGone)
	o.dropLocked()
}

// put adds pieces. It never waits: where there is no room the reader is too slow, what
// waits is dropped, and the connection is closed. Nothing is ever left out in the middle,
// unless the client has asked for conflation.
func (o *outbox) put(pieces ...piece) {
	o.add(pieces...)
	o.wakeUp()
}

// add is put, where the writer is woken later.
func (o *outbox) add(pieces ...piece) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending != nil {
		return
	}
	for _, p := range pieces {
		o.countLocked(p, 1)
	}
	o.pieces = append(o.pieces, pieces...)
	if (o.bytes > o.limitBytes || len(o.pieces) > maxPieces) && !o.conflateLocked() {
		o.dropLocked()
		o.endLocked(endSlow)
	}
}

// conflateLocked drops every state for which a newer one of the same account waits, and tells
// so where the first of them was, once. It succeeds if that makes half of the outbox free: so each
// piece is looked at about twice, however slow the reader is.
func (o *outbox) conflateLocked() bool {
	if !o.conflates {
		return false
	}
	var seen = make(map[ledger.Pubkey]struct{})
	var marked bool
	var first piece // of those dropped
	var place int
	var newest ledger.Seq
	kept := make([]piece, 0, len(o.pieces)+1) // newest first
	for _, p := range slices.Backward(o.pieces) {
		newest = max(newest, p.seq)
		stale := p.gap || p.marker && marked
		if p.state != nil && !stale {
			_, stale = seen[*p.state]
		}
		if stale {
			first, place = p, len(kept)
			o.countLocked(p, -1)
			continue
		}
		if marked = marked || p.marker; p.state != nil {
			seen[*p.state] = struct{}{}
		}
		kept = append(kept, p)
	}
	if first.state != nil {
		first.seq-- // the last one before it
	}
	gap := one(appendFrame(nil, func(b []byte) []byte { return appendGap(b, first.seq, newest) }), 0)
	gap.gap, gap.seq, gap.behind = true, first.seq, first.behind
	o.countLocked(gap, 1)
	o.pieces = slices.Insert(kept, place, gap)
	slices.Reverse(o.pieces)
	return o.bytes <= o.limitBytes/2 && len(o.pieces) <= maxPieces/2
}

// holdsOnlyAnswers reports whether nothing waits that says how to go on.
func (o *outbox) holdsOnlyAnswers() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !slices.ContainsFunc(o.pieces, func(p piece) bool { return p.turn != nil || p.missed != nil || p.seq != 0 })
}

// close ends the connection after what waits was written. The first call counts.
func (o *outbox) close(c closing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.endLocked(c)
}

func (o *outbox) endLocked(c closing) {
	if o.ending != nil {
		return
	}
	o.ending = &c
	if c.atOnce() {
		o.dropLocked()
	}
	o.wakeUp()
}

// wakeUp lets the writer look again. It never waits.
func (o *outbox) wakeUp() {
	if o.wake != nil {
		o.wake()
	}
}

// endsAtOnce reports whether what waits is not written any more.
func (o *outbox) endsAtOnce() bool {
	ending := o.endingSoon()
	return ending != nil && ending.atOnce()
}

// endingSoon returns how the connection is about to end, nil if it is not.
func (o *outbox) endingSoon() *closing {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ending
}

// isClosing reports whether the connection is about to end.
func (o *outbox) isClosing() bool {
	return o.endingSoon() != nil
}

// take returns some of what may be written by a writer that stands at a place of the ring it
// follows: frames, or alone what stands for others. When that leaves something behind
// later frames of the ring, until is their end. With nothing left comes how the connection
// ends. The slice passed in is reused.
func (o *outbox) take(reuse []piece, at uint64) (pieces []piece, until ledger.Opt[place], ending *closing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(reuse)
	pieces = reuse[:0]
	for taken := 0; len(o.pieces) > 0 && taken < takeBytes && o.pieces[0].behind.at <= at; {
		p := o.pieces[0]
		alone := p.turn != nil || p.missed != nil
		if alone && len(pieces) > 0 {
			break
		}
		taken += len(p.data)
		o.countLocked(p, -1)
		pieces = append(pieces, p)
		o.pieces[0] = piece{}
		o.pieces = o.pieces[1:]
		if alone {
			break
		}
	}
	if len(o.pieces) > 0 {
		return pieces, ledger.Some(o.pieces[0].behind), nil
	}
	o.pieces = nil
	return pieces, until, o.ending
}
