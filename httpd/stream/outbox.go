package stream

import (
	"sync"
	"sync/atomic"
)

const (
	// maxPieces bounds how many pieces wait for one socket. With the bound on bytes it
	// bounds what a connection can pin.
	maxPieces = 1 << 15
	// takeBytes is about how much the writer takes at once. What it took is beyond recall,
	// so it bounds how long a slow consumer is written to before it is told so.
	takeBytes = 1 << 20
)

// outbox holds finished frames until the writer takes them.
type outbox struct {
	limitBytes int
	unshared   *unshared
	wake       chan struct{} // has a token when there may be something to take

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
	return &outbox{limitBytes: limitBytes, unshared: u, wake: make(chan struct{}, 1)}
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
// waits is dropped, and the connection is closed. Nothing is ever left out in the middle.
func (o *outbox) put(pieces ...piece) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending != nil {
		return
	}
	for _, p := range pieces {
		o.countLocked(p, 1)
	}
	o.pieces = append(o.pieces, pieces...)
	if o.bytes > o.limitBytes || len(o.pieces) > maxPieces {
		o.dropLocked()
		o.endLocked(endSlow)
		return
	}
	o.wakeLocked()
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
	if c.code == 0 { // nobody reads what waits
		o.dropLocked()
	}
	o.wakeLocked()
}

func (o *outbox) wakeLocked() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// isClosing reports whether the connection is about to end.
func (o *outbox) isClosing() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ending != nil
}

// take returns some of what waits and, with the last of it, how the connection ends. The
// slice passed in is reused.
func (o *outbox) take(reuse []piece) (pieces []piece, ending *closing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(reuse)
	pieces = reuse[:0]
	for taken := 0; len(o.pieces) > 0 && taken < takeBytes; {
		taken += len(o.pieces[0].data)
		o.countLocked(o.pieces[0], -1)
		pieces = append(pieces, o.pieces[0])
		o.pieces[0] = piece{}
		o.pieces = o.pieces[1:]
	}
	if len(o.pieces) > 0 {
		o.wakeLocked()
		return pieces, nil
	}
	o.pieces = nil
	return pieces, o.ending
}
