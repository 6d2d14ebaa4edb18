package stream

import (
	"net"
	"time"

	"ledgerd/engine/ledger"
)

// subscriber is one connection.
type subscriber struct {
	hub    *Hub
	level  ledger.Commitment // never changes
	conn   net.Conn          // read by the reader, written by the writer
	outbox *outbox
	budget budget     // the reader's
	sent   ledger.Seq // the writer's: the newest seq written to the socket

	// The hub's lock guards the rest.

	wants   wants
	matched match // the update heard last, so that it is heard once
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

// walked reports whether the subscriber is given every emission, not just its matches.
func (s *subscriber) walked() bool {
	return s.wants.everything || s.wants.extended || s.holding
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

// hearOpening is called for those who are walked: who wants everything hears the whole
// emission now, the others only whether it is a rollback.
func (s *subscriber) hearOpening(e *emission) {
	switch {
	case s.holding:
		s.hold(e)
	case s.wants.everything && s.resumed < e.firstSeq:
		s.outbox.put(e.pieces(s.wants.form())...)
	case s.wants.everything:
		s.hearAlone(e)
	default:
		s.sayOpening(e)
	}
}

// hearMatch is called for every update that matches a name, perhaps more than once.
func (s *subscriber) hearMatch(e *emission, i int) {
	if s.holding || s.matched == (match{e, i}) || e.seq(i) <= s.resumed {
		return
	}
	s.matched = match{e, i}
	s.outbox.put(one(e.frame(s.wants.form(), i), e.seq(i)))
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
	if e.lastSeq >= s.resumed {
		s.resumed = 0
	}
}

// hearAlone goes through an emission without the index: after a snapshot, and while part
// of it was seen before.
func (s *subscriber) hearAlone(e *emission) {
	s.sayOpening(e)
	for i := range e.updates {
		if e.seq(i) > s.resumed && s.wants.match(&e.updates[i]) {
			s.outbox.put(one(e.frame(s.wants.form(), i), e.seq(i)))
		}
	}
	s.sayEnding(e)
}

// sayOpening says that the emission is a rollback, unless the client has seen that.
func (s *subscriber) sayOpening(e *emission) {
	if frame := e.opening(); s.wants.extended && frame != nil && s.resumed < e.firstSeq {
		s.outbox.put(one(frame, 0))
	}
}

// sayEnding says that a block is complete.
func (s *subscriber) sayEnding(e *emission) {
	if frame := e.ending(); s.wants.extended && frame != nil && s.resumed <= e.lastSeq {
		s.outbox.put(one(frame, e.lastSeq))
	}
}
