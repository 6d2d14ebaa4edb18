package stream

import (
	"context"
	"slices"

	"golang.org/x/sync/semaphore"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/stream/frame"
)

// backlog is what a client has missed. Its writer makes the frames as the socket takes them,
// without a lock.
type backlog struct {
	past      *past // what comes first; nil if all is in memory
	kept      *recent
	emissions []*emission
	total     int64 // how many emissions had come after the last of these; 0: they need not be kept for resumes
	seen      ledger.Seq
	wants     wants // when it was asked for

	gap   *packet  // comes first where the backlog is a digest; nil: it is whole
	stale [][]bool // of a digest's updates: a newer state of the same account follows
}

// size returns about what the backlog takes. Emissions are in memory anyway as long as they are kept.
func (b *backlog) size() int {
	bytes := packetBytes + 8*cap(b.emissions)
	for _, e := range b.emissions {
		switch {
		case b.gap != nil:
			bytes += 24 + len(e.updates) // of stale
		case b.total == 0:
			bytes += e.size()
		}
	}
	return bytes
}

// putBacklog puts a backlog in the outbox.
func (s *subscriber) putBacklog(b *backlog) {
	s.put(&packet{run: func() error { return s.writeMissed(b) }, extra: b.size()})
}

// putSince has the writer send, as a backlog, the emissions that came since there had been so many in
// total. What waits for that holds no emission, and so a slow reader keeps none in memory.
func (s *subscriber) putSince(total int64, seen ledger.Seq) {
	kept := &s.hub.recent[s.level]
	b := &backlog{kept: kept, total: kept.total(), seen: seen, wants: s.wants}
	if b.total == total {
		return
	}
	s.put(&packet{run: func() error {
		var whole bool
		s.hub.mu.Lock()
		b.emissions, whole = kept.between(total, b.total)
		s.hub.mu.Unlock()
		if !whole {
			return &endSlow
		}
		return s.writeMissed(b)
	}})
}

// holds reports whether a part of the nth emission is sent.
func (b *backlog) holds(n, part int) bool {
	e := b.emissions[n]
	switch {
	case !e.after(part, b.seen):
		return false
	case e.isMarker(part):
		return b.gap == nil || n == len(b.emissions)-1
	}
	return (b.gap == nil || !b.stale[n][part]) && b.wants.match(&e.updates[part])
}

// parts visits the parts that are sent, in log order.
func (b *backlog) parts(visit func(*emission, int) bool) {
	for n, e := range b.emissions {
		for part := opening; part <= e.ending(); part++ {
			if b.holds(n, part) && !visit(e, part) {
				return
			}
		}
	}
}

// outgrown reports whether none of a backlog's emissions is kept for resumes any more. A client
// whose backlog is outgrown before it was sent is a slow consumer: so what all backlogs hold
// together is bounded, however slow their readers are.
func (b *backlog) outgrown() bool { return b != nil && b.total != 0 && b.total <= b.kept.gone.Load() }

// writeMissed writes a backlog, unless the connection is about to end without it. The ring
// goes on meanwhile: a client that takes the backlog too slowly is lapped like any other.
func (s *subscriber) writeMissed(b *backlog) error {
	s.sent, s.missed = b.seen, b
	if err := s.writePast(b); err != nil {
		return err
	}
	if err := s.writeBacklog(b); err != nil {
		return err
	}
	s.missed = nil
	return nil
}

// writeBacklog writes the part of a backlog that is in memory, as the socket takes it.
func (s *subscriber) writeBacklog(b *backlog) error {
	if b.wants.form.shows(withTokens) {
		s.seat.work.charge(foundCost(s.hub.newestDecimals(b.emissions)))
	}
	size := b.size()
	if b.gap != nil && !s.hub.memory.Allows(size) {
		return &endMemory
	}
	s.hub.memory.Hold(size)
	defer s.hub.memory.Hold(-size)
	room := newBatch(s.hub.memory)
	defer freeBatch(s.hub.memory, room)
	to := batch{data: *room}
	if b.gap != nil {
		var err error
		if b.stale, err = s.hub.stale[s.level].at(s.outbox.ctx, b.total, b.emissions); err != nil {
			return s.outbox.ending()
		}
		to.add(b.gap)
	}
	for e, part := range b.parts {
		if to.frames > 0 && !to.hasRoom(e.frameBytes(b.wants.form, part)) {
			if err := s.writePart(to); err != nil {
				return err
			}
			to = batch{data: *room}
		}
		to.addPart(e, b.wants.form, part) // one frame alone may be larger than the room
	}
	if to.frames == 0 {
		return nil
	}
	return s.writePart(to)
}

// writePart writes a part of a backlog. An error says why the next one is not to be written.
func (s *subscriber) writePart(b batch) error {
	if more := cap(b.data) - batchBytes; more > 0 {
		s.hub.memory.Hold(more)
		defer s.hub.memory.Hold(-more)
		if !s.hub.memory.Allows(more) {
			return &endMemory
		}
	}
	b.published = 0 // how late it comes says nothing of us
	if err := s.writeOnce(b); err != nil {
		return err
	}
	if s.isLate() {
		s.hub.meters.laps.Inc()
		return &endSlow
	}
	return s.ping(s.hub.now())
}

// jump goes on with a digest of what a conflating subscriber has not seen: the newest state of every account that changed, and the rollback and
// slot_end frames of the newest emission. It does not if not all of that is kept, something waits that says how to go on, or the client cannot
// pay for it.
func (s *subscriber) jump() (jumped bool, err error) {
	b := s.digest()
	if b == nil {
		return false, nil
	}
	return true, s.writeMissed(b)
}

func (s *subscriber) digest() *backlog {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	leftOut, ok := s.outbox.startJump()
	seen := s.sent
	if leftOut.Known {
		seen = leftOut.Value
	}
	kept, at := &s.hub.recent[s.level], s.standsLocked()
	if !ok || seen < kept.oldest(at.seq) {
		return nil
	}
	b := &backlog{kept: kept, emissions: kept.after(seen), total: at.total, seen: seen, wants: s.wants}
	b.emissions = b.emissions[:len(b.emissions)-int(kept.total()-at.total)]
	b.gap = single(frame.AppendText(nil, func(b []byte) []byte { return appendGap(b, seen, at.seq) }))
	b.gap.gaps, b.gap.seq = 1, seen
	if !s.seat.work.spend(b.cost()) {
		return nil
	}
	if s.at.ring != nil {
		s.at = *s.at.ring.newest()
	}
	return b
}

// staleness tells of the newest emissions of a level which updates a newer state of the same account follows. It is the same for all digests
// at one head: so followers that lag together need not wait for each other. The last one is kept.
type staleness struct {
	turn  *semaphore.Weighted
	total int64 // how many emissions had come
	of    [][]bool
}

// at returns the staleness of some emissions: the newest ones when there had been so many in total. ctx ends the waiting for others.
func (s *staleness) at(ctx context.Context, total int64, newest []*emission) ([][]bool, error) {
	if err := s.turn.Acquire(ctx, 1); err != nil { // what it takes to find out is large
		return nil, err
	}
	defer s.turn.Release(1)
	if s.total != total || len(s.of) < len(newest) {
		s.total, s.of = total, findStale(newest)
	}
	return s.of[len(s.of)-len(newest):], nil
}

func findStale(emissions []*emission) [][]bool {
	seen := make(map[ledger.Pubkey]struct{})
	stale := make([][]bool, len(emissions))
	for n, e := range slices.Backward(emissions) {
		stale[n] = make([]bool, len(e.updates))
		for i := range slices.Backward(e.updates) {
			k := e.updates[i].Account.Pubkey
			_, stale[n][i] = seen[k]
			seen[k] = struct{}{}
		}
	}
	return stale
}
