package stream

import (
	"cmp"
	"context"
	"maps"
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"ledgerd/httpd/ratelimit"
)

// seats count connections against the caps, and know the client of each. A seat is taken before
// the upgrade, so that a rejection is still an HTTP answer, and given back when the connection ends.
type seats struct {
	mu               sync.Mutex
	total, perClient int
	taken            int
	clients          map[netip.Addr]*peer
	swept            time.Time
}

// peer is one client, by its address. Work is paid for by all its connections together.
type peer struct {
	conns int // guarded by seats.mu
	work  work
	turns turns
	named atomic.Int64 // names of its connections
	past  atomic.Int64 // bytes that they have read of the log, and not written
	// snapshots are bytes of those that wait for its connections.
	snapshots atomic.Int64
	revoked   *atomic.Bool // nil: it never is
	// filtered are its topics that are asked what they take. The hub's lock guards it.
	filtered int
}

// seat is one connection's. An exempt client has a peer for each.
type seat struct {
	*peer
	free func() // gives the seat back, once
}

func newPeer(client ratelimit.Client) *peer {
	return &peer{turns: newTurns(1, 1), revoked: client.Revoked}
}

// isRevoked reports whether the client may have no connections any more.
func (p *peer) isRevoked() bool { return p.revoked != nil && p.revoked.Load() }

// take reserves a seat. The caps do not apply to exempt clients. Their connections are counted all the same, since a client may not be
// exempt any more when its next connection comes.
func (s *seats) take(client ratelimit.Client) (*seat, *rejection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.swept) > time.Second {
		s.swept = now
		// A client that comes back before its work is paid has not got rid of its debt.
		maps.DeleteFunc(s.clients, func(_ netip.Addr, c *peer) bool { return c.conns == 0 && c.work.isFull() })
	}
	c := s.clients[client.Key]
	taken := 1
	switch {
	case client.Exempt:
		taken = 0
	case s.taken >= s.total:
		return nil, errFull
	case c != nil && c.conns >= cmp.Or(client.Sockets, s.perClient):
		return nil, errClientFull
	}
	if c == nil {
		c = newPeer(client)
		s.clients[client.Key] = c
	}
	s.taken += taken
	c.conns++
	free := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.taken -= taken
		c.conns--
	}
	if client.Exempt {
		return &seat{newPeer(client), sync.OnceFunc(free)}, nil
	}
	return &seat{c, sync.OnceFunc(free)}, nil
}

// bucket is a token bucket, told by when it is full again. The zero value is full.
type bucket struct {
	mu   sync.Mutex
	full time.Time
}

// spend takes out what comes back within a time. It returns false instead if the bucket needs longer
// than most as it is.
func (b *bucket) spend(refill, most time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	left := max(b.full.Sub(now), 0)
	if left > most {
		return false
	}
	b.full = now.Add(left + refill)
	return true
}

func (b *bucket) isFull() bool { return b.spend(0, 0) }

// Every frame a client sends, pings and fragments too, takes a token of its connection's bucket. A message about a topic gives it
// back once it is paid for.
const (
	budgetBurst     = 100
	budgetPerSecond = 20
)

// takeToken spends the token of a frame; false if there is none.
func (b *bucket) takeToken() bool {
	return b.spend(time.Second/budgetPerSecond, (budgetBurst-1)*time.Second/budgetPerSecond)
}

// giveToken takes back that a frame took a token.
func (b *bucket) giveToken() { b.spend(-time.Second/budgetPerSecond, math.MaxInt64) }

// What a client's connections ask for costs time of a processor, by a list of prices. It may be so
// much at once, and so much each second after that: 2.5 % of a core over a minute. As much again may go for connections that are
// refused.
const (
	workBurst     = 600 * time.Millisecond
	workPerSecond = 15 * time.Millisecond
)

// work is the time that a client may spend.
type work struct{ bucket }

// spend pays for something before it is done; false if the client is in debt, and is refused. One
// that is not may get into it.
func (w *work) spend(cost time.Duration) bool {
	return w.bucket.spend(cost*time.Second/workPerSecond, workBurst*time.Second/workPerSecond)
}

// left returns how much may be spent.
func (w *work) left() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	refill := min(max(time.Until(w.full), 0), workBurst*time.Second/workPerSecond)
	return workBurst - refill*workPerSecond/time.Second
}

// charge notes what something turned out to cost.
func (w *work) charge(cost time.Duration) {
	w.bucket.spend(cost*time.Second/workPerSecond, math.MaxInt64)
}

const (
	// allPastReaders is how many read the log at the same time: each has some 16 MiB in hand.
	allPastReaders = 1
	// allSnapshotReaders is how many snapshots are made at the same time.
	allSnapshotReaders = 2
)

// turns let so many in as they have room for. The others wait in the order in which they came.
type turns struct {
	past     *semaphore.Weighted // to read a part of the log
	snapshot *semaphore.Weighted // to read and encode one
}

func newTurns(pasts, snapshots int64) turns {
	return turns{semaphore.NewWeighted(pasts), semaphore.NewWeighted(snapshots)}
}

// await waits for a turn of all clients. Of each client only one connection stands in line, by turns
// of its own: so clients take turns, however many connections each has. done ends the turn.
func (h *Hub) await(ctx context.Context, ours, all *semaphore.Weighted) (done func(), err error) {
	if err := ours.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	if err := all.Acquire(ctx, 1); err != nil {
		ours.Release(1)
		return nil, err
	}
	done = func() {
		all.Release(1)
		ours.Release(1)
	}
	if ctx.Err() != nil || h.closed.Load() { // the turn came at the same moment, or because others were ended first
		done()
		return nil, context.Canceled
	}
	return done, nil
}
