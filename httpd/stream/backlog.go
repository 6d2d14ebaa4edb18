package stream

import (
	"time"

	"ledgerd/engine/ledger"
)

// backlog is what a client has missed. Its writer makes the frames as the socket takes them,
// without a lock.
type backlog struct {
	past      *past // what comes first; nil if all is there
	emissions []*emission
	newest    ledger.Version // of these; 0: there is none
	seen      ledger.Seq
	wants     wants // of its own

	// In the first emission:
	opened bool
	update int
}

// clone returns what is wanted now, for a backlog that is written later.
func (w wants) clone() wants {
	w.pubkeys, w.programs = w.pubkeys.clone(), w.programs.clone()
	return w
}

// tokens returns what a backlog takes of a client's budget: about the share of one core that
// making it takes, and what it holds until it is written.
func (b *backlog) tokens() int {
	updates, log := 0, 0
	if b.past != nil {
		log = pastTokens
	}
	for _, e := range b.emissions {
		updates += len(e.updates) + 1
	}
	return log + updates/4096 + b.wants.keys()/100
}

// next returns the next frames, as many as fit in room; none at the end.
func (b *backlog) next(room []byte) piece {
	p, f := piece{data: room}, b.wants.form()
	add := func(data []byte, seq ledger.Seq) {
		p.data, p.seq = data, max(p.seq, seq)
		p.frames++
	}
	for len(b.emissions) > 0 && cap(p.data)-len(p.data) > maxFrameBytes {
		e := b.emissions[0]
		switch i := b.update; {
		case !b.opened:
			if b.opened = true; f == extended && e.openingAfter(b.seen) {
				add(e.appendOpening(p.data), 0)
			}
		case i < len(e.updates):
			if b.update++; e.updateAfter(i, b.seen) && b.wants.match(&e.updates[i]) {
				add(e.appendUpdate(p.data, f, i), e.seq(i))
			}
		default:
			if f == extended && e.endingAfter(b.seen) {
				add(e.appendEnding(p.data), e.lastSeq)
			}
			b.emissions[0] = nil
			b.emissions, b.opened, b.update = b.emissions[1:], false, 0
		}
	}
	return p
}

// outgrown reports whether a backlog holds what nobody else does: none of it is kept any more.
// So what all of them hold together is bounded, however slow their readers are.
func (b *backlog) outgrown(kept *recent) bool {
	return b != nil && b.newest != 0 && uint64(b.newest) <= kept.gone.Load()
}

// writeMissed writes a backlog, unless the connection is about to end without it. The ring
// goes on meanwhile: who gets through the backlog too slowly is lapped like anybody.
func (s *subscriber) writeMissed(b *backlog) error {
	s.missed, s.late = b, false
	defer func() { s.missed = nil }()
	done, err := s.writePast(b)
	if done && err == nil {
		done, err = s.writeEmissions(b)
	}
	if done || err != nil || s.outbox.endsAtOnce() {
		return err
	}
	// Lapped before its end: the place in the ring is behind what has not been told, so nothing
	// may be written from there.
	if s.at.seq = s.sent; s.outbox.conflates && s.at.ring != nil {
		if jumped, err := s.jump(); jumped || err != nil {
			return err
		}
	}
	s.hub.meters.laps.Inc()
	return &endSlow
}

// writeEmissions writes the part of a backlog that is in memory; not done is who was lapped
// meanwhile, or is about to end.
func (s *subscriber) writeEmissions(b *backlog) (done bool, err error) {
	return s.writeFrames(b.next, func() bool { return s.at.lapped() || s.late })
}

// writeFrames writes what next makes of the room it is given, as the socket takes it, until
// there is no more; not done is who is seen to be too slow for it, or is about to end.
func (s *subscriber) writeFrames(next func(room []byte) piece, tooSlow func() bool) (done bool, err error) {
	room := batches.Get().(*[]byte)
	defer batches.Put(room)
	for !s.outbox.endsAtOnce() && !tooSlow() {
		p := next((*room)[:0])
		if p.frames == 0 {
			return true, nil
		}
		if err := s.writeOnce(p); err != nil {
			return false, err
		}
		if err := s.ping(time.Now()); err != nil {
			return false, err
		}
	}
	return false, nil
}
