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
	hub   *Hub
	level ledger.Commitment // never changes
	conn  net.Conn          // nil until its handshake is answered; read by the reader, written by the writer
	seat  *seat
	// awaited: it joined before the hub was closed, and Shutdown waits for it. It never changes.
	awaited bool
	outbox  *outbox
	budget  bucket         // the reader's
	named   int            // the reader's: names that memory is taken for
	warned  bool           // the reader's: that little work is left
	wakes   atomic.Int64   // since the writer last found nothing to do; 0: there is no writer
	at      cursor         // the writer's
	sent    ledger.Seq     // the writer's: the newest seq the client received, or knew
	missed  *backlog       // the writer's: what it is writing; nil: none
	late    bool           // the writer's: it was seen to be too slow for that
	timers  timers         // the writer's
	ticks   atomic.Bool    // the writer is to call tick every heartbeat; see scheduleTicks
	told    atomic.Bool    // the close frame is written
	ended   sync.WaitGroup // done when the writer has written its last

	// The hub's lock guards the rest.

	wants wants   // changed by the reader alone, which reads it without the lock
	ring  *ring   // what it follows, once the writer is through with what lies before
	last  *packet // the match delivered last, so that it is delivered once; nil once it was woken
	// matches are the packets since it was last woken or, if there are none, those before: about so many come with the next block.
	matches int
	// holding, while a snapshot is read: what is published meanwhile is delivered after it.
	holding  bool
	heldSlot ledger.Slot // the position when it began
	heldSeq  ledger.Seq
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
	return !s.holding && (s.wants.everything && s.resumed != 0 || !s.wants.everything && s.wants.form.marksSlots())
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

// deliverOpening is called for the subscribers that are given every emission, before the updates.
// Those that want everything and have seen part of it receive the rest now, part by part: what waits for a
// slow reader must keep no emission in memory.
func (s *subscriber) deliverOpening(e *emission) {
	s.deliverPart(e, opening)
	if s.wants.everything {
		for i := range e.updates {
			s.deliverPart(e, i)
		}
	}
}

// deliverMatch is called for every update that matches a name, perhaps more than once. The names of a subscriber that now wants everything
// lead to it until they are unlinked.
func (s *subscriber) deliverMatch(e *emission, i int) {
	if s.holding || s.wants.everything || !e.after(i, s.resumed) {
		return
	}
	p := e.packet(s.wants.form, i)
	if s.last == p {
		return
	}
	room := 0
	if s.last == nil {
		a := s.audience()
		a.matched = append(a.matched, s)
		room, s.matches = s.matches+s.matches/4, 0 // blocks differ
	}
	s.last = p
	s.matches++
	s.outbox.add(s.after(), room, p)
}

// deliverEnding is called for the subscribers that are given every emission, after the updates.
func (s *subscriber) deliverEnding(e *emission) {
	s.deliverPart(e, e.ending())
	if s.resumed != 0 && e.lastSeq >= s.resumed { // what the client has seen has come
		s.waitFor(0)
	}
}

// waitFor begins or, with 0, ends the leaving out of what leads up to a seq.
func (s *subscriber) waitFor(seq ledger.Seq) {
	s.resumed = seq
	s.audience().classify(s)
}

// deliverPart delivers a part of an emission, if it has a frame and was not seen.
func (s *subscriber) deliverPart(e *emission, part int) {
	if e.after(part, s.resumed) && e.hasFrame(s.wants.form, part) {
		s.put(e.packet(s.wants.form, part))
	}
}
