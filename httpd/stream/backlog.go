package stream

import "ledgerd/engine/ledger"

// backlog is what a client has missed. Its writer makes the frames as the socket takes them,
// without a lock.
type backlog struct {
	past      *past // what comes first; nil if all is in memory
	emissions []*emission
	newest    ledger.Version // of these; 0: there is none
	seen      ledger.Seq
	wants     wants // when it was asked for

	part int // the next one of the first emission
}

func newBacklog(emissions []*emission, seen ledger.Seq, wants wants) *backlog {
	return &backlog{emissions: emissions, seen: seen, wants: wants, part: opening}
}

// size returns about what the backlog takes while it waits: the emissions are in memory anyway.
func (b *backlog) size() int { return packetBytes + 8*cap(b.emissions) }

// next appends the next frames to the batch, as many as fit; none at the end.
func (b *backlog) next(to *batch) {
	for len(b.emissions) > 0 && to.hasRoom() {
		e, part := b.emissions[0], b.part
		b.part++
		marker := part == opening || part == e.ending()
		if e.after(part, b.seen) && (marker || b.wants.match(&e.updates[part])) {
			to.add(e.appendPart(to.data, b.wants.form, part), e.seq(part))
		}
		if part == e.ending() {
			b.emissions[0] = nil
			b.emissions, b.part = b.emissions[1:], opening
		}
	}
}

// outgrown reports whether none of a backlog's emissions is kept for resumes any more. A client
// whose backlog is outgrown before it was sent is a slow consumer: so what all backlogs hold
// together is bounded, however slow their readers are.
func (b *backlog) outgrown(kept *recent) bool {
	return b != nil && b.newest != 0 && uint64(b.newest) <= kept.gone.Load()
}

// writeMissed writes a backlog, unless the connection is about to end without it. The ring
// goes on meanwhile: a client that takes the backlog too slowly is lapped like any other.
func (s *subscriber) writeMissed(b *backlog) error {
	s.sent, s.missed, s.late = b.seen, b, false
	defer func() { s.missed = nil }()
	done, err := s.writePast(b)
	if done && err == nil {
		done, err = s.writeBacklog(b)
	}
	if done || err != nil || s.outbox.endsAtOnce() {
		return err
	}
	// Lapped before its end: the position in the ring is after what was not sent, so nothing
	// may be written from there.
	if s.at.seq = s.sent; s.outbox.conflates && s.at.ring != nil {
		if jumped, err := s.jump(); jumped || err != nil {
			return err
		}
	}
	s.hub.meters.laps.Inc()
	return &endSlow
}

// writeBacklog writes the part of a backlog that is in memory. Not done means that the
// subscriber was lapped meanwhile, or is about to end.
func (s *subscriber) writeBacklog(b *backlog) (done bool, err error) {
	if b.wants.form == withTokens {
		s.seat.work.charge(foundCost(s.hub.newestDecimals(b.emissions)))
	}
	return s.writeFrames(b.next, func() bool { return s.at.lapped() || s.late })
}

// writeFrames writes what next makes, as the socket takes it, until there is no more. Not done means
// that the subscriber is too slow for it, or is about to end.
func (s *subscriber) writeFrames(next func(*batch), tooSlow func() bool) (done bool, err error) {
	room := s.hub.memory.batch()
	defer s.hub.memory.freeBatch(room)
	for !s.outbox.endsAtOnce() && !tooSlow() {
		b := batch{data: *room}
		if next(&b); b.frames == 0 {
			return true, nil
		}
		if err := s.writeOnce(b); err != nil {
			return false, err
		}
		if err := s.ping(s.hub.now()); err != nil {
			return false, err
		}
	}
	return false, nil
}
