package stream

import (
	"time"

	"ledgerd/engine/ledger"
)

// subscriber is the speaker of a connection to /api/ws/accounts: one subscription of the updates of a level.
type subscriber struct {
	connection
	level ledger.Commitment // never changes

	// The hub's lock guards the rest.

	wants wants   // changed by the reader alone, which reads it without the lock
	ring  *ring   // what it follows, once the writer is through with what lies before
	last  *packet // the match delivered last, so that it is delivered once; nil once it was woken
	// matches are the packets since it was last woken or, if there are none, those before: about so many come with the next block.
	matches int
	held    *standing // where it stands while a snapshot is read, what is published meanwhile is delivered after it; nil: none is read
	awaits  *awaits   // nil: nothing
}

// awaits says that a client has seen a seq that this node has not reached: updates up to that seq are not sent.
type awaits struct {
	seq ledger.Seq
	by  time.Time // if it has not come by then, the client has to start over
	id  messageID // of the message that said so
}

// standing is where a level stands: its newest slot, and the newest seq delivered there.
type standing struct {
	head *ledger.Head // nil before anything was published, when the others are 0
	slot ledger.Slot
	seq  ledger.Seq

	total int64 // how many emissions had come
}

// phase is how a subscriber is given emissions.
type phase uint8

const (
	following phase = iota // by its ring
	matching               // by its matches alone
	walking                // each by itself: its parts that match, or that it has not seen
	holding                // not now
)

func (s *subscriber) phase() phase {
	switch {
	case s.held != nil:
		return holding
	case s.wants.everything && s.awaits == nil:
		return following
	case s.wants.everything || s.wants.form.marksSlots():
		return walking
	}
	return matching
}

// standsLocked returns where the subscriber stands: what comes while a snapshot is read is delivered after it.
func (s *subscriber) standsLocked() standing {
	if s.held != nil {
		return *s.held
	}
	return s.hub.positionLocked(s.level)
}

// seen returns the seq up to which the client is sent nothing, 0 if it is sent everything.
func (s *subscriber) seen() ledger.Seq {
	if s.awaits == nil {
		return 0
	}
	return s.awaits.seq
}

// join makes a subscriber without a socket, which resumes after the seq it has seen if it says so.
func (h *Hub) join(asked request, place *seat) (s *subscriber) {
	s = &subscriber{level: asked.level, wants: wants{everything: !asked.narrow}}
	s.wants.names, _ = s.wants.names.plus(asked.names)
	s.wants.show(asked.form)
	s.open(h, s, place)
	if asked.conflates {
		s.outbox.jump = s.jump
	}
	defer s.endOnPanic()
	s.giveNames(-s.wants.names.count())
	h.mu.Lock()
	defer h.mu.Unlock()
	s.enterLocked()
	s.sent = h.reachedLocked(s.level)
	s.audience().add(s)
	s.wantLocked(asked.names[pubkeys])
	if asked.from.Known {
		s.resumeLocked(asked.from.Value, noID)
	}
	return s
}

// leave takes the subscriber out of its audience.
func (s *subscriber) leave() {
	s.unlink(s.wants.names)
	s.giveNames(s.named) // that were not linked yet
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.audience().remove(s)
}

func (s *subscriber) sentLocked() ledger.Seq { return s.sent }

// wanted says what kind of names the client wants.
func (s *subscriber) wanted() string {
	switch {
	case s.wants.everything:
		return "everything"
	case s.wants.names.count() > 0:
		return "keys"
	}
	return "nothing"
}

func (s *subscriber) warning(left time.Duration) *packet {
	if !s.wants.form.marksSlots() {
		return nil
	}
	return message(`{"type":"warning","reason":"work budget","remaining":%d}`, left.Milliseconds())
}

// tick sends a heartbeat, and ends the waiting for a seq that has come, or comes too late.
func (s *subscriber) tick(now time.Time) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	at := s.standsLocked()
	switch {
	case s.held != nil, s.awaits == nil:
	case at.seq >= s.awaits.seq: // the seq has come, for a client that wants only names, or that was held
		s.await(nil)
	case now.After(s.awaits.by):
		id := s.awaits.id
		s.await(nil)
		s.answerResync(id, s.hub.oldestLocked(s.level, at.seq), at.seq)
	}
	if s.wants.form.marksSlots() {
		s.put(heartbeat(at.slot, at.seq))
	}
}

// audience are the subscribers that this one is among.
func (s *subscriber) audience() *audience { return &s.hub.levels[s.level] }

// follow goes on with another ring, or none, from its head. What waits for that holds nothing of the ring.
func (s *subscriber) follow(r *ring) {
	if r == s.ring {
		return
	}
	var head position
	if r != nil {
		head = r.end()
		r.followers.put(s, true)
	}
	s.put(&packet{run: func() error {
		s.at, s.sent = cursor{}, max(s.sent, head.seq)
		if r != nil {
			s.at = r.cursorAt(head)
		}
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

// answer puts an answer in the outbox. The hub's lock is held.
func (s *subscriber) answer(format string, args ...any) { s.put(message(format, args...)) }

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

func (s *subscriber) showsData() bool { return s.wants.form.shows(withData) }

// deliverMatch delivers an update that is wanted, once. The names of a subscriber that now wants everything lead to it until they are unlinked.
func (s *subscriber) deliverMatch(e *emission, i int, n name) {
	if s.held != nil || s.wants.everything || !e.after(i, s.seen()) || !s.wants.takes(&e.updates[i], n) {
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

// await sets the seq that the client has seen and this node has not reached; nil ends the wait.
func (s *subscriber) await(what *awaits) {
	s.awaits = what
	s.audience().classify(s)
}

// deliverPart delivers a part of an emission, if it has a frame and was not seen.
func (s *subscriber) deliverPart(e *emission, part int) {
	if e.after(part, s.seen()) && e.hasFrame(s.wants.form, part) {
		s.put(e.packet(s.wants.form, part))
	}
}
