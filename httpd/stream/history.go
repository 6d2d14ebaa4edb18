package stream

import (
	"cmp"
	"context"
	"errors"
	"time"

	"ledgerd/engine/ledger"
)

// History is the log, which reaches further back than what the hub keeps in memory. Any goroutine
// may call it.
type History interface {
	// Oldest returns the oldest seq that Past can begin after. It does not wait.
	Oldest() ledger.Seq
	// Past returns a function that visits publications as they were published, in log order, until
	// the newest, or until visit returns false or ctx ends. The next call goes on after the one that
	// was visited last. The first one begins early enough that every block is visited that was
	// not final yet when the update of the given seq was published, and every later one.
	Past(after ledger.Seq) func(ctx context.Context, visit func(*ledger.Publication) bool) error
}

// pastBytes is about how much is read from the log at once, to be then written without holding the
// turn: a slow client must not hold up others that read.
const pastBytes = 8 << 20

// leastPastBytes is about how much a connection reads at once even if its client holds its share: beginning a smaller read would cost
// more than the read.
const leastPastBytes = 512 << 10

// past is the part of a backlog that only the log holds. The writer uses it.
type past struct {
	head  ledger.Version // the processed one of the newest publication that belongs to it, which no other has
	until ledger.Version // where the emissions of the backlog begin that are kept in memory

	visit func(context.Context, func(*ledger.Publication) bool) error
	feed  feed
	held  int  // bytes that the feed takes
	part  int  // bytes of what was read last, until it was written
	whole bool // all of it was read
}

// missedLocked returns what lies after a seq.
func (h *Hub) missedLocked(level ledger.Commitment, after, newest ledger.Seq, told telling) *backlog {
	kept := &h.recent[level]
	b := &backlog{level: level, emissions: kept.after(after), total: kept.total(), seen: after, told: told}
	if h.config.History == nil || after < h.config.History.Oldest() || !kept.lacks(after, newest) {
		return b
	}
	b.past = &past{
		head:  h.head.Tip(ledger.Processed).Version,
		visit: h.config.History.Past(after), feed: feed{levels: ledger.Commitments},
	}
	if level == ledger.Processed {
		b.past.feed.levels = 1 // which remembers no blocks
	}
	return b
}

// oldestLocked returns the oldest seq that a client can resume from.
func (h *Hub) oldestLocked(level ledger.Commitment, newest ledger.Seq) ledger.Seq {
	oldest := h.recent[level].oldest(newest)
	if h.config.History != nil {
		oldest = min(oldest, h.config.History.Oldest())
	}
	return oldest
}

var errHole = errors.New("the log ends before what is kept in memory begins")

// readPast returns the next emissions that only the log holds, and about what they take.
func (b *backlog) readPast(ctx context.Context, bytes int) (out []*emission, size int, err error) {
	p := b.past
	err = p.visit(ctx, func(publication *ledger.Publication) bool {
		version := publication.Head.Tip(ledger.Processed).Version
		if p.whole = version >= p.head; version > p.head {
			return false
		}
		for _, e := range p.feed.take(publication) {
			switch {
			case e.level != b.level || e.lastSeq < b.seen:
			case e.version >= p.until:
				p.whole = true
				return false
			default:
				out = append(out, e)
				size += e.size()
			}
		}
		return !p.whole && size < bytes
	})
	if err == nil && !p.whole && size < bytes {
		err = errHole
	}
	return out, size, err
}

// readPast is readInTurn. Meanwhile pings and, if the client wants them, heartbeats tell the peer that the connection lives.
func (c *connection) readPast(b *backlog) (emissions []*emission, err error) {
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer c.endOnPanic()
		emissions, err = c.readInTurn(b)
	}()
	beat := time.NewTicker(heartbeatInterval)
	defer beat.Stop()
	for {
		select {
		case <-read:
			return emissions, err
		case <-beat.C:
		}
		if failed := c.keepAlive(b); failed != nil {
			c.outbox.close(endGone) // which ends the reading
			<-read
			return nil, failed
		}
	}
}

// keepAlive writes a ping when one is due, and a heartbeat if the client wants these. The heartbeat carries the seq that the client has
// reached, from which it may resume again.
func (c *connection) keepAlive(b *backlog) error {
	if err := c.ping(c.hub.now()); err != nil || !b.told.hasHeartbeats() {
		return err
	}
	c.hub.mu.Lock()
	at := c.hub.positionLocked(b.level)
	c.hub.mu.Unlock()
	p := heartbeat(at.slot, c.sent)
	return c.writeOnce(batch{p.data, p.tally})
}

// readInTurn reads the next emissions of a backlog from the log, when it is the client's turn.
func (c *connection) readInTurn(b *backlog) ([]*emission, error) {
	h, p, ctx := c.hub, b.past, c.outbox.ctx
	done, err := h.await(ctx, c.seat.turns.past, h.turns.past)
	if err != nil {
		return nil, cmp.Or(c.outbox.ending(), &endShutdown)
	}
	defer done()
	most := c.mayRead()
	if !h.memory.Take(most) {
		return nil, &endMemory
	}
	defer h.memory.Hold(-most)
	emissions, size, err := b.readPast(ctx, most)
	c.holdPart(p, size)
	h.memory.Hold(-p.held)
	p.held = p.feed.size()
	h.memory.Hold(p.held)
	c.seat.work.charge(pastPrice + time.Duration((size+p.held)/updateBytes)*updatePrice)
	if ctx.Err() != nil {
		return nil, c.outbox.ending()
	}
	if err != nil {
		h.config.Logger.Error("cannot read the log for a subscriber", "after", uint64(b.seen), "error", err)
		return nil, &endInternal
	}
	return emissions, nil
}

// mayRead returns about how much the connection may read of the log at once: what is left of the eighth of the memory in which its
// client's connections may hold parts of the log. So slow connections delay other connections of their client, and not other clients.
func (c *connection) mayRead() int {
	left := int(c.hub.config.Memory.Limit()/clientShare - c.seat.past.Load())
	return min(c.hub.pastBytes, max(left, leastPastBytes))
}

// holdPart notes how much the connection holds of what it has read of the log.
func (c *connection) holdPart(p *past, bytes int) {
	c.seat.past.Add(int64(bytes - p.part))
	p.part = bytes
}

// writePast writes what a subscriber missed before the emissions kept. A connection that is to end does
// so without the rest.
func (c *connection) writePast(b *backlog) error {
	p := b.past
	if p == nil {
		return nil
	}
	defer func() { c.hub.memory.Hold(-p.held) }()
	for !p.whole {
		if err := c.writeNextPast(b); err != nil {
			return err
		}
		if ending := c.outbox.ending(); ending != nil {
			return ending
		}
	}
	return nil
}

// writeNextPast reads a part of what the log holds of a backlog, and writes it.
func (c *connection) writeNextPast(b *backlog) error {
	defer c.holdPart(b.past, 0)
	emissions, err := c.readPast(b)
	if err != nil {
		return err
	}
	return c.writeBacklog(&backlog{level: b.level, emissions: emissions, seen: b.seen, told: b.told})
}
