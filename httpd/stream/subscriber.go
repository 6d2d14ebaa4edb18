package stream

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"ledgerd/engine/ledger"
)

// subscriber is one connection.
type subscriber struct {
	hub    *Hub
	level  ledger.Commitment // never changes
	conn   net.Conn          // read by the reader, written by the writer
	seat   *seat
	outbox *outbox
	budget budget // the reader's
	duty   duty
	at     cursor         // the writer's
	sent   ledger.Seq     // the writer's: the newest seq the client was told, or knew
	missed *backlog       // the writer's: what it is writing; nil: none
	late   bool           // the writer's: it was seen to be too slow for that
	pulse  pulse          // the writer's
	beats  atomic.Bool    // the writer is to do what is due every heartbeat; see keepBeat
	ended  sync.WaitGroup // done when the writer has done its last

	// The hub's lock guards the rest.

	wants   wants
	kind    kind        // as it is counted
	ring    *ring       // what it follows, once the writer is through with what lies before
	used    [forms]bool // the rings it ever followed
	matched match       // the update heard last, so that it is heard once
	woken   bool        // as soon as all of the publication was told
	// holding, while a snapshot is read: emissions are kept and heard after it.
	holding     bool
	held        []*emission
	heldUpdates int // bounds held
	// resumed, while set, is the seq a client has seen that is not here yet: what leads up to
	// it is left out. If it has not come by then, the client has to start over.
	resumed   ledger.Seq
	resumedBy time.Time
	resumeID  messageID
}

type match struct {
	emission *emission
	update   int
}

// maxHeldUpdates is how much may be published while a snapshot is read. One publication may
// hold 64 blocks.
const maxHeldUpdates = 1 << 20

// walked reports whether the subscriber is given every emission by itself: not just its
// matches, and not by way of a ring.
func (s *subscriber) walked() bool {
	return s.holding || s.wants.everything && s.resumed != 0 || !s.wants.everything && s.wants.extended
}

// count counts the subscriber as one of a kind.
func (s *subscriber) count(k kind) {
	if s.kind == k {
		return
	}
	s.hub.meters.kinds[s.kind].Dec()
	s.hub.meters.kinds[k].Inc()
	s.kind = k
}

// follow goes on with another ring, or none, from its head.
func (s *subscriber) follow(r *ring) {
	if r == s.ring {
		return
	}
	p := piece{turn: new(cursor)}
	if r != nil {
		p.turn = r.newest()
		r.followers[s] = struct{}{}
	}
	s.put(p)
	if s.ring != nil {
		delete(s.ring.followers, s)
	}
	s.ring = r
}

// put adds to the outbox, behind all that the ring was told.
func (s *subscriber) put(pieces ...piece) {
	if s.ring != nil {
		for i := range pieces {
			pieces[i].behind = s.ring.end
		}
	}
	s.outbox.put(pieces...)
}

// hold keeps an emission for after the snapshot.
func (s *subscriber) hold(e *emission) {
	s.heldUpdates += len(e.updates) + 1
	if s.heldUpdates > maxHeldUpdates {
		s.outbox.close(endSlow)
		s.held = nil
		return
	}
	s.held = append(s.held, e)
}

// hearOpening is called for those who are walked: who wants everything and has seen part of
// it hears the rest of it now, the others only whether it is a rollback.
func (s *subscriber) hearOpening(e *emission) {
	switch {
	case s.holding:
		s.hold(e)
	case s.wants.everything:
		s.hearAlone(e)
	default:
		s.sayOpening(e)
	}
}

// hearMatch is called for every update that matches a name, perhaps more than once.
func (s *subscriber) hearMatch(e *emission, i int) {
	if s.holding || s.matched == (match{e, i}) || !e.updateAfter(i, s.resumed) {
		return
	}
	s.matched = match{e, i}
	frame := e.frame(s.wants.form(), i)
	p := piece{data: frame.data, frames: 1, seq: e.seq(i), state: &frame.key}
	if s.ring != nil {
		p.behind = s.ring.end
	}
	if s.outbox.add(p); !s.woken {
		s.woken = true
		a := s.audience()
		a.matched = append(a.matched, s)
	}
}

// hearEnding is called for those who are walked. Who wants everything has heard it.
func (s *subscriber) hearEnding(e *emission) {
	if s.holding {
		return
	}
	if !s.wants.everything {
		s.sayEnding(e)
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
	s.audience().place(s)
}

// hearAlone goes through an emission without the index: after a snapshot, and while part
// of it was seen before.
func (s *subscriber) hearAlone(e *emission) {
	s.sayOpening(e)
	var p packer
	for i := range e.updates {
		switch {
		case !e.updateAfter(i, s.resumed) || !s.wants.match(&e.updates[i]):
		case s.outbox.conflates: // one by one
			key := e.updates[i].Account.Pubkey // a copy: what waits keeps no block in memory
			s.put(piece{data: e.appendUpdate(nil, s.wants.form(), i), frames: 1, seq: e.seq(i), state: &key})
		default:
			p.open.data = e.appendUpdate(p.room(), s.wants.form(), i)
			p.count(e.seq(i))
		}
	}
	s.put(p.finish()...)
	s.sayEnding(e)
}

// sayOpening says that the emission is a rollback, unless the client has seen that.
func (s *subscriber) sayOpening(e *emission) {
	if s.wants.extended && e.openingAfter(s.resumed) {
		s.put(piece{data: e.appendOpening(nil), frames: 1, seq: e.firstSeq - 1, marker: true})
	}
}

// sayEnding says that a block is complete.
func (s *subscriber) sayEnding(e *emission) {
	if s.wants.extended && e.endingAfter(s.resumed) {
		s.put(piece{data: e.appendEnding(nil), frames: 1, seq: e.lastSeq, marker: true})
	}
}
