package stream

import "sync"

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
	wake       chan struct{} // has a token when there may be something to take

	mu     sync.Mutex
	pieces []piece
	bytes  int
	ending *closing // set once: nothing is accepted after
}

func newOutbox(limitBytes int) *outbox {
	return &outbox{limitBytes: limitBytes, wake: make(chan struct{}, 1)}
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
		o.bytes += len(p.data)
	}
	if o.bytes > o.limitBytes || len(o.pieces)+len(pieces) > maxPieces {
		o.pieces, o.bytes = nil, 0
		o.endLocked(endSlow)
		return
	}
	o.pieces = append(o.pieces, pieces...)
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
		o.pieces, o.bytes = nil, 0
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
	taken := 0
	for len(o.pieces) > 0 && taken < takeBytes {
		taken += len(o.pieces[0].data)
		pieces = append(pieces, o.pieces[0])
		o.pieces[0] = piece{}
		o.pieces = o.pieces[1:]
	}
	o.bytes -= taken
	if len(o.pieces) > 0 {
		o.wakeLocked()
		return pieces, nil
	}
	o.pieces = nil
	return pieces, o.ending
}
