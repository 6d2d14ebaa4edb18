package stream

import (
	"context"
	"slices"

	"golang.org/x/sync/semaphore"

	"ledgerd/engine/ledger"
)

// backlog is what a client has missed. Its writer makes the frames as the socket takes them,
// without a lock.
type backlog struct {
	past      *past // what comes first; nil if all is in memory
	level     ledger.Commitment
	emissions []*emission // none while the backlog waits to be written
	total     int64       // how many emissions had come after the last of these; 0: they need not be kept for resumes
	seen      ledger.Seq
	told      telling // when it was asked for

	gap   *packet  // comes first where the backlog is a digest; nil: it is whole
	stale [][]bool // of a digest's updates: a newer state of the same account follows
	// left are the accounts of a digest that matched before a stale update and not after it. The client may still hold their old
	// state, so their newest state is sent whether it matches or not.
	left map[ledger.Pubkey]struct{}
}

// leftBytes is about what an account takes in backlog.left.
const leftBytes = 64

// telling selects and encodes the parts of emissions that a client is sent: it is what a subscriber wants, or a topic.
type telling interface {
	// span returns the first of the parts that may be told, and the one after the last.
	span(e *emission) (first, end int)
	match(u *ledger.Update) bool
	// frameBytes is about what the frame of a part takes, which appendPart appends, if there is one.
	frameBytes(e *emission, part int) int
	appendPart(dst []byte, e *emission, part int) []byte
	// readDecimals reads the decimals of the mints of token accounts, if they are wanted, before their parts are appended. It returns
	// how many mints it queried.
	readDecimals(h *Hub, emissions []*emission) (asked int)
	hasHeartbeats() bool
	// size is what it may hold alone.
	size() int
}

// size returns about what the backlog takes. Emissions are in memory anyway as long as they are kept.
func (b *backlog) size() int {
	bytes := packetBytes + 8*cap(b.emissions) + b.told.size()
	if b.total == 0 {
		for _, e := range b.emissions {
			bytes += e.size()
		}
	}
	return bytes
}

// replayLocked counts that a client resumes, and has its writer send what it has missed, after a position in the ring
// that it follows. newest is the newest seq of the level.
func (c *connection) replayLocked(after *position, b *backlog, newest ledger.Seq) {
	source := "memory"
	switch {
	case b.past != nil:
		source = "log"
	case b.seen > newest:
		source = "ahead"
	}
	c.hub.meters.resumes[source].Inc()
	if total := b.total - int64(len(b.emissions)); b.past != nil || total < b.total {
		b.emissions = nil
		c.putBacklog(after, b, total)
	}
}

// putSince has the writer send, as a backlog, the emissions that came since there had been so many in
// total.
func (s *subscriber) putSince(total int64, seen ledger.Seq) {
	b := &backlog{level: s.level, total: s.hub.recent[s.level].total(), seen: seen, told: new(s.wants)}
	if b.total > total {
		s.putBacklog(s.after(), b, total)
	}
}

// putBacklog has the writer send a backlog, whose emissions came since there had been so many in total. The waiting packet refers to
// none of them, so a slow reader keeps none in memory.
func (c *connection) putBacklog(after *position, b *backlog, total int64) {
	c.outbox.put(after, &packet{extra: b.size(), tally: tally{seq: b.seen + 1}, run: func() error {
		c.sent, c.missed = b.seen, b // set first: if the backlog is gone, the close frame says which seq the client has reached
		if !c.hub.gather(b, total) {
			return &endSlow
		}
		return c.writeMissed(b)
	}})
}

// gather takes the emissions of a backlog, which came since there had been so many in total. Emissions that are not kept any more are
// read from the log if the backlog already has a part there; otherwise gather returns false.
func (h *Hub) gather(b *backlog, total int64) (all bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if b.emissions, all = h.recent[b.level].between(total, b.total); b.past == nil {
		return all
	}
	b.past.until = b.past.head + 1
	if len(b.emissions) > 0 {
		b.past.until = b.emissions[0].version
	}
	return true
}

// holds reports whether a part of the nth emission is sent. It is asked of each part once, in log order.
func (b *backlog) holds(n, part int) bool {
	e := b.emissions[n]
	switch {
	case !e.after(part, b.seen):
		return false
	case e.isMarker(part):
		return b.gap == nil || n == len(b.emissions)-1
	}
	u := &e.updates[part]
	if b.gap == nil {
		return b.told.match(u)
	}
	if !b.stale[n][part] {
		_, left := b.left[u.Account.Pubkey]
		return left || b.told.match(u)
	}
	if leaves(b.told, u) {
		b.left[u.Account.Pubkey] = struct{}{}
	}
	return false
}

// leaves reports whether an update is sent to a client because the account matched before the update, and no longer after it.
func leaves(told telling, u *ledger.Update) bool {
	changes := u.OwnerBefore.Known || u.WalletBefore.Known || u.DataBefore.Known
	return changes && told.match(u) && !told.match(&ledger.Update{Account: u.Account})
}

// parts visits the parts that are sent, in log order.
func (b *backlog) parts(visit func(*emission, int) bool) {
	for n, e := range b.emissions {
		for part, end := b.told.span(e); part < end; part++ {
			if b.holds(n, part) && !visit(e, part) {
				return
			}
		}
	}
}

// isOutgrown reports whether none of the emissions of the backlog that is written is kept for resumes any more. A client
// whose backlog is outgrown before it was sent is a slow consumer: so what all backlogs hold
// together is bounded, however slow their readers are.
func (c *connection) isOutgrown() bool {
	b := c.missed
	return b != nil && len(b.emissions) > 0 && b.total <= c.hub.recent[b.level].gone.Load()
}

// writeMissed writes a backlog, unless the connection is about to end without it. The ring
// goes on meanwhile: a client that takes the backlog too slowly is lapped like any other.
func (c *connection) writeMissed(b *backlog) error {
	c.sent, c.missed = b.seen, b // for a digest, which did not wait in the outbox
	if err := c.writePast(b); err != nil {
		return err
	}
	if err := c.writeBacklog(b); err != nil {
		return err
	}
	c.missed = nil
	return nil
}

// writeBacklog writes the part of a backlog that is in memory, as the socket takes it.
func (c *connection) writeBacklog(b *backlog) error {
	c.seat.work.charge(foundCost(b.told.readDecimals(c.hub, b.emissions)))
	size := b.size()
	c.hub.memory.Hold(size)
	defer c.hub.memory.Hold(-size)
	room := newBatch(c.hub.memory)
	defer freeBatch(c.hub.memory, room)
	to := batch{data: *room}
	if b.gap != nil {
		var err error
		if b.stale, err = c.hub.stale[b.level].at(c.outbox.ctx, b.total, b.emissions); err != nil {
			return c.outbox.ending()
		}
		b.left = make(map[ledger.Pubkey]struct{})
		to.add(b.gap)
		c.hub.meters.gaps.Inc()
	}
	noted := 0 // bytes of the accounts that left
	defer func() { c.hub.memory.Hold(-noted) }()
	write := func() error {
		more := leftBytes*len(b.left) - noted
		c.hub.memory.Hold(more)
		if noted += more; more > 0 && !c.hub.memory.Allows(noted) {
			return &endMemory
		}
		return c.writePart(to)
	}
	for e, part := range b.parts {
		if to.frames > 0 && !to.hasRoom(b.told.frameBytes(e, part)) {
			if err := write(); err != nil {
				return err
			}
			to = batch{data: *room}
		}
		to.take(b.told.appendPart(to.data, e, part), e, part) // one frame alone may be larger than the room
	}
	if to.frames == 0 {
		return nil
	}
	return write()
}

// writePart writes a part of a backlog. An error says why the next one is not to be written.
func (c *connection) writePart(b batch) error {
	if more := cap(b.data) - batchBytes; more > 0 {
		c.hub.memory.Hold(more)
		defer c.hub.memory.Hold(-more)
		if !c.hub.memory.Allows(more) {
			return &endMemory
		}
	}
	b.published = 0 // how late it comes says nothing of us
	if err := c.writeOnce(b); err != nil {
		return err
	}
	if c.isLate() {
		return &endSlow
	}
	return c.ping(c.hub.now())
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
	b := &backlog{level: s.level, emissions: kept.after(seen), total: at.total, seen: seen, told: new(s.wants)}
	b.emissions = b.emissions[:len(b.emissions)-int(kept.total()-at.total)]
	b.gap = gap(seen, at.seq)
	b.gap.seq = seen
	if !s.seat.work.spend(b.cost()) {
		return nil
	}
	if s.at.ring != nil {
		s.at = s.at.ring.newest()
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
