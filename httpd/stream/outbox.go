package stream

import (
	"sync"

	"ledgerd/engine/ledger"
)

// maxPieces bounds how many pieces wait for one socket. With the bound on bytes it bounds
// what a connection can pin.
const maxPieces = 1 << 15

// outbox holds finished frames until the writer takes them.
type outbox struct {
	limitBytes int
	wake       chan struct{} // has a token when there is something to take

	mu     sync.Mutex
	pieces []piece
	bytes  int
	seq    ledger.Seq // the newest seq in pieces, or taken
	ending *closing   // set once: nothing is accepted after
}

// closing is how a connection ends: a close frame with a code, or without one (code 0)
// when there is nobody to read it.
type closing struct {
	code uint16
	text string
}

func newOutbox(limitBytes int) *outbox {
	return &outbox{limitBytes: limitBytes, wake: make(chan struct{}, 1)}
}

// put adds pieces; seq is the newest one in them, 0 for answers. It never waits: where
// there is no room the reader is too slow, what waits is dropped, and the connection is
// closed. Nothing is ever left out in the middle.
func (o *outbox) put(seq ledger.Seq, pieces ...piece) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending != nil {
		return
	}
	for _, p := range pieces {
		o.bytes += len(p.data)
	}
	if o.bytes > o.limitBytes || len(o.pieces)+len(pieces) > maxPieces {
		o.endLocked(closing{code: closeSlow})
		o.pieces, o.bytes = nil, 0
		return
	}
	o.pieces = append(o.pieces, pieces...)
	o.seq = max(o.seq, seq)
	o.wakeLocked()
}

// close ends the connection after what waits was written. The first call counts.
func (o *outbox) close(c closing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.endLocked(c)
}

func (o *outbox) endLocked(c closing) {
	if o.ending == nil {
		o.ending = &c
		o.wakeLocked()
	}
}

func (o *outbox) wakeLocked() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// take returns what waits, the newest seq in it, and how the connection ends after it,
// nil if it does not. The slice passed in is reused for what comes next.
func (o *outbox) take(reuse []piece) (pieces []piece, seq ledger.Seq, ending *closing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(reuse)
	pieces, o.pieces, o.bytes = o.pieces, reuse[:0], 0
	return pieces, o.seq, o.ending
}

// isClosing reports whether the connection is about to end.
func (o *outbox) isClosing() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ending != nil
}
