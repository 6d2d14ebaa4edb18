package stream

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger"
)

// Close codes of RFC 6455, section 7.4.1, and our own.
const (
	closeNormal      = 1000
	closeGoingAway   = 1001
	closeUnsupported = 1003
	closeBadUTF8     = 1007
	closePolicy      = 1008
	closeInternal    = 1011
	closeTryAgain    = 1013
	closeSlow        = 4008
)

// subscriber is one connection.
type subscriber struct {
	hub    *Hub
	level  ledger.Commitment // never changes
	conn   *websocket.Conn   // read by the reader alone
	outbox *outbox
	budget budget
	seen   atomic.Int64 // the newest seq written to the socket

	// The hub's lock guards the rest.

	wants   wants
	matched match // the update heard last, so that it is heard once
	// holding, while a snapshot is read: emissions are kept and heard after it.
	holding bool
	held    []*emission
	// heldUpdates bounds held.
	heldUpdates int
	// resumed, while set, is the seq a client has seen that is not here yet: updates up to it
	// are left out. If it has not come by then, the client has to start over.
	resumed   ledger.Seq
	resumedBy time.Time
	resumeID  messageID
}

type match struct {
	emission *emission
	update   int
}

// maxHeldUpdates is how much may be published while a snapshot is read.
const maxHeldUpdates = 4 << 20

// hold keeps an emission for after the snapshot.
func (s *subscriber) hold(e *emission) {
	s.heldUpdates += len(e.updates) + 1
	if s.heldUpdates > maxHeldUpdates {
		s.outbox.close(closing{code: closeSlow})
		s.held = nil
		return
	}
	s.held = append(s.held, e)
}

// hearOpening is called for those who want everything, who hear the whole emission now,
// and for those who want to know of rollbacks.
func (s *subscriber) hearOpening(e *emission) {
	switch {
	case s.holding:
		s.hold(e)
	case s.wants.everything && s.resumed < e.firstSeq:
		s.outbox.put(e.lastSeq, e.pieces(s.wants.form())...)
	case s.wants.everything:
		s.hearAlone(e)
	case s.wants.extended:
		s.hearFrame(0, e.opening())
	}
}

// hearMatch is called for every update that matches a name, perhaps more than once.
func (s *subscriber) hearMatch(e *emission, i int) {
	if s.holding {
		// Those who are walked were given the emission already.
		if !s.wants.extended && (len(s.held) == 0 || s.held[len(s.held)-1] != e) {
			s.hold(e)
		}
		return
	}
	if s.matched == (match{e, i}) || e.seq(i) <= s.resumed {
		return
	}
	s.matched = match{e, i}
	s.outbox.put(e.seq(i), one(e.frame(s.wants.form(), i)))
}

// hearEnding is called for those who want to know where a block ends. Who wants
// everything has heard it.
func (s *subscriber) hearEnding(e *emission) {
	if s.wants.extended && !s.wants.everything && !s.holding {
		s.hearFrame(e.lastSeq, e.ending())
	}
}

// hearAlone goes through an emission without the index: after a snapshot, and while part
// of it was seen before.
func (s *subscriber) hearAlone(e *emission) {
	if s.wants.extended {
		s.hearFrame(0, e.opening())
	}
	for i := range e.updates {
		if e.seq(i) > s.resumed && s.wants.match(&e.updates[i]) {
			s.outbox.put(e.seq(i), one(e.frame(s.wants.form(), i)))
		}
	}
	if s.wants.extended {
		s.hearFrame(e.lastSeq, e.ending())
	}
}

func (s *subscriber) hearFrame(seq ledger.Seq, frame []byte) {
	if frame != nil && seq >= s.resumed {
		s.outbox.put(seq, one(frame))
	}
}

// release ends the holding: the held emissions are heard as the subscriber now wants.
func (s *subscriber) release() {
	for _, e := range s.held {
		s.hearAlone(e)
	}
	s.holding, s.held, s.heldUpdates = false, nil, 0
}

// say puts an answer in the outbox, as one text frame.
func (s *subscriber) say(write func([]byte) []byte) {
	s.outbox.put(0, one(appendFrame(nil, write)))
}

// cut resets the connection: whatever the kernel still holds is not worth waiting for.
func (s *subscriber) cut() {
	if tcp, ok := unwrap[interface{ SetLinger(int) error }](s.conn.NetConn()); ok {
		_ = tcp.SetLinger(0) // at worst the close is a polite one
	}
	_ = s.conn.Close()
}

// unwrap looks for what the socket below can do through the conns around it.
func unwrap[T any](conn net.Conn) (found T, ok bool) {
	for {
		if found, ok = conn.(T); ok {
			return found, true
		}
		switch c := conn.(type) {
		case interface{ UnsafeConn() net.Conn }:
			conn = c.UnsafeConn()
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return found, false
		}
	}
}
