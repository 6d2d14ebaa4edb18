package stream

import (
	"context"
	"net/netip"
	"sync"
	"time"
)

// seats count connections against the caps, and know the client of each. A seat is taken before
// the upgrade, so that a rejection is still an HTTP answer, and given back when the connection ends.
type seats struct {
	total, perClient int

	mu      sync.Mutex
	taken   int
	clients map[netip.Addr]*peer
	swept   time.Time
}

// peer is one client, by its address. Work is paid for by all its connections together.
type peer struct {
	conns int // guarded by seats.mu
	work  work
	turns [turnKinds]turn
}

// seat is one connection's. That of an exempt client is not counted, and is a client by itself.
type seat struct {
	*peer
	addr    netip.Addr
	counted bool // until it is given back
}

func newSeats(total, perClient int) *seats {
	return &seats{total: total, perClient: perClient, clients: make(map[netip.Addr]*peer)}
}

func newPeer() *peer { return &peer{turns: newTurns(1, 1)} }

// take reserves a seat. Exempt clients are above both caps.
func (s *seats) take(addr netip.Addr, exempt bool, now time.Time) (*seat, error) {
	if exempt {
		return &seat{peer: newPeer()}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweepLocked(now)
	c := s.clients[addr]
	switch {
	case s.taken >= s.total:
		return nil, errFull
	case c != nil && c.conns >= s.perClient:
		return nil, errClientFull
	case c == nil:
		c = newPeer()
		s.clients[addr] = c
	}
	s.taken++
	c.conns++
	return &seat{c, addr, true}, nil
}

// free gives a seat back, once.
func (s *seats) free(place *seat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !place.counted {
		return
	}
	place.counted = false
	s.taken--
	if place.conns--; place.conns == 0 && place.work.isPaid(time.Now()) {
		delete(s.clients, place.addr)
	}
}

// sweepLocked forgets clients without connections whose work is paid. A client that comes back
// before that has not got rid of its debt.
func (s *seats) sweepLocked(now time.Time) {
	if now.Sub(s.swept) < time.Second {
		return
	}
	s.swept = now
	for addr, c := range s.clients {
		if c.conns == 0 && c.work.isPaid(now) {
			delete(s.clients, addr)
		}
	}
}

// bucket is a token bucket. It begins full.
type bucket struct {
	spent  float64 // of its size
	filled time.Time
}

// fill puts in what has come since the last time.
func (b *bucket) fill(now time.Time, perSecond float64) {
	b.spent = max(0, b.spent-now.Sub(b.filled).Seconds()*perSecond)
	b.filled = now
}

// Every frame a client sends, pings and fragments too, takes a token of its connection's bucket.
const (
	budgetBurst     = 100
	budgetPerSecond = 20
)

// take spends one token; false if there is none. The reader alone calls it.
func (b *bucket) take(now time.Time) bool {
	b.fill(now, budgetPerSecond)
	if b.spent > budgetBurst-1 {
		return false
	}
	b.spent++
	return true
}

// What a client's connections ask for costs time of a processor, by a list of prices. It may be so
// much at once, and so much each second after that: less than 5 % of a core.
const (
	workBurst     = 600 * time.Millisecond
	workPerSecond = 30 * time.Millisecond
)

// work is the time that a client has spent.
type work struct {
	mu    sync.Mutex
	spent bucket // seconds
}

// spend pays for something before it is done; false if the client is in debt, and is refused. One
// that is not may get into it.
func (w *work) spend(cost time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spent.fill(time.Now(), workPerSecond.Seconds())
	if w.spent.spent >= workBurst.Seconds() {
		return false
	}
	w.spent.spent += cost.Seconds()
	return true
}

// charge notes what something turned out to cost.
func (w *work) charge(cost time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spent.spent += cost.Seconds()
}

// isPaid reports whether all of it was made good.
func (w *work) isPaid(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spent.fill(now, workPerSecond.Seconds())
	return w.spent.spent == 0
}

// turnKind is what is done by turns.
type turnKind uint8

const (
	readPast     turnKind = iota // a part of the log
	readSnapshot                 // reading and encoding one
	turnKinds
)

const (
	// allPastReaders is how many read the log at the same time: each has some 16 MiB in hand.
	allPastReaders = 1
	// allSnapshotReaders is how many snapshots are made at the same time.
	allSnapshotReaders = 2
)

// turn lets so many in as it has room for. The others wait in the order in which they came, as the
// senders of a channel do.
type turn chan struct{}

func newTurns(pasts, snapshots int) (t [turnKinds]turn) {
	t[readPast], t[readSnapshot] = make(turn, pasts), make(turn, snapshots)
	return t
}

// await waits for a turn of the hub's. Of each client only one connection stands in line: so
// clients take turns, however many connections each has. done ends the turn.
func (h *Hub) await(ctx context.Context, c *peer, kind turnKind) (done func(), err error) {
	ours, all := c.turns[kind], h.turns[kind]
	select {
	case ours <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case all <- struct{}{}:
	case <-ctx.Done():
		<-ours
		return nil, ctx.Err()
	}
	done = func() { <-all; <-ours }
	if ctx.Err() != nil || h.isClosed() { // the turn came at the same moment, or because others were ended first
		done()
		return nil, context.Canceled
	}
	return done, nil
}
