package stream

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/stream/frame"
)

// subscriber is one connection.
type subscriber struct {
	hub    *Hub
	level  ledger.Commitment // never changes
	conn   net.Conn          // read by the reader, written by the writer
	seat   *seat
	outbox *outbox
	budget bucket         // the reader's
	wakes  atomic.Int64   // since the writer last found nothing to do; 0: there is no writer
	at     cursor         // the writer's
	sent   ledger.Seq     // the writer's: the newest seq the client received, or knew
	missed *backlog       // the writer's: what it is writing; nil: none
	late   bool           // the writer's: it was seen to be too slow for that
	timers timers         // the writer's
	ticks  atomic.Bool    // the writer is to call tick every heartbeat; see scheduleTicks
	ended  sync.WaitGroup // done when the writer has written its last

	// The hub's lock guards the rest.

	wants wants   // changed by the reader alone, which reads it without the lock
	ring  *ring   // what it follows, once the writer is through with what lies before
	last  *packet // the match delivered last, so that it is delivered once; nil once it was woken
	// holding, while a snapshot is read: emissions are held and delivered after it.
	holding bool
	held    []*emission
	// resumed, while set, is the seq a client has seen that is not here yet: what leads up to
	// it is left out. If it has not come by then, the client has to start over.
	resumed   ledger.Seq
	resumedBy time.Time
	resumeID  messageID
}

// audience are the subscribers that this one is among.
func (s *subscriber) audience() *audience { return &s.hub.levels[s.level] }

// perEmission reports whether the subscriber is given every emission by itself: not just its
// matches, and not by way of a ring.
func (s *subscriber) perEmission() bool {
	return s.holding || s.wants.everything && s.resumed != 0 || !s.wants.everything && s.wants.form.marksSlots()
}

// follow goes on with another ring, or none, from its head.
func (s *subscriber) follow(r *ring) {
	if r == s.ring {
		return
	}
	to := new(cursor)
	if r != nil {
		to = r.newest()
		r.followers.put(s, true)
	}
	s.put(&packet{run: func() error {
		s.at, s.sent = *to, max(s.sent, to.seq)
		return nil
	}})
	if s.ring != nil {
		s.ring.followers.put(s, false)
	}
	s.ring = r
}

// after returns the end of the ring that the subscriber follows: what it is sent now comes after it.
func (s *subscriber) after() *position {
	if s.ring == nil {
		return nil
	}
	return s.ring.head.Load()
}

// put adds packets to the outbox, after all that the ring holds.
func (s *subscriber) put(packets ...*packet) { s.outbox.put(s.after(), packets...) }

// answer puts an answer in the outbox, as one text frame. The hub's lock is held. The text is of our
// making, and needs no escapes.
func (s *subscriber) answer(format string, args ...any) {
	s.put(single(frame.AppendText(nil, func(b []byte) []byte { return fmt.Appendf(b, format, args...) })))
}

// timestamp returns a time in ISO 8601, to the second.
func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// hold keeps an emission for after the snapshot.
func (s *subscriber) hold(e *emission) {
	if s.outbox.isClosing() {
		return
	}
	if !s.hub.memory.reserve(e.size()) {
		s.outbox.close(endMemory)
		return
	}
	s.held = append(s.held, e)
}

// deliverOpening is called for the subscribers that are given every emission, before the updates.
func (s *subscriber) deliverOpening(e *emission) {
	if !s.holding && !s.wants.everything {
		s.deliverMarker(e, opening)
	}
}

// deliverMatch is called for every update that matches a name, perhaps more than once.
func (s *subscriber) deliverMatch(e *emission, i int) {
	if s.holding || !e.after(i, s.resumed) {
		return
	}
	p := e.packet(s.wants.form, i)
	if s.last == p {
		return
	}
	if s.last == nil {
		a := s.audience()
		a.matched = append(a.matched, s)
	}
	s.last = p
	s.outbox.add(s.after(), p)
}

// deliverEnding is called for the subscribers that are given every emission, after the updates.
// Those that want everything and have seen part of it receive the rest now.
func (s *subscriber) deliverEnding(e *emission) {
	switch {
	case s.holding:
		s.hold(e)
		return
	case s.wants.everything:
		s.deliverAlone(e)
	default:
		s.deliverMarker(e, e.ending())
	}
	s.passed(e)
}

// passed ends the leaving out where what the client has seen has come.
func (s *subscriber) passed(e *emission) {
	if s.resumed != 0 && e.lastSeq >= s.resumed {
		s.waitFor(0)
	}
}

// waitFor begins or, with 0, ends the leaving out of what leads up to a seq.
func (s *subscriber) waitFor(seq ledger.Seq) {
	s.resumed = seq
	s.audience().classify(s)
}

// deliverAlone goes through an emission without the index: after a snapshot, and while part
// of it was seen before.
func (s *subscriber) deliverAlone(e *emission) {
	s.deliverMarker(e, opening)
	for i := range e.updates {
		if e.after(i, s.resumed) && s.wants.match(&e.updates[i]) {
			s.put(e.packet(s.wants.form, i))
		}
	}
	s.deliverMarker(e, e.ending())
}

// deliverMarker delivers the opening or the ending of an emission.
func (s *subscriber) deliverMarker(e *emission, part int) {
	if !e.after(part, s.resumed) {
		return
	}
	if data := e.appendPart(nil, s.wants.form, part); len(data) > 0 {
		s.put(&packet{data: data, tally: tally{frames: 1, seq: e.seq(part), published: e.published}, kind: markerPacket})
	}
}
