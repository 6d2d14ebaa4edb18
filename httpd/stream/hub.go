package stream

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"ledgerd/engine/ledger"
)

// Ledger is what the hub asks to answer snapshots. Query.Head names the version.
type Ledger interface {
	// Accounts answers in the order of keys; those that are missing do not exist.
	Accounts(q ledger.Query, keys []ledger.Pubkey) ([]ledger.Account, ledger.View, error)
	// Program lists accounts in pubkey order past a key, and whether there are more.
	Program(q ledger.Query, program ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int) ([]ledger.Account, bool, ledger.View, error)
}

// Config says what a hub does. Ledger is required; the zero value of the rest works.
type Config struct {
	Ledger  Ledger
	Origins []string // Origin headers a browser may come with; empty: any

	MaxConns          int // 0: 16384
	MaxConnsPerClient int // 0: 20

	PingInterval      time.Duration // 0: 20 s
	SilenceTimeout    time.Duration // a peer that shows nothing for so long is gone; 0: 60 s
	WriteTimeout      time.Duration // a socket that takes no frame for so long is reset; 0: 5 s
	HeartbeatInterval time.Duration // 0: 1 s
	ResumeTimeout     time.Duration // how long to wait for a seq that is not here yet; 0: 10 s
	OutboxBytes       int           // what may wait for one socket; 0: 32 MiB
	SnapshotBytes     int           // snapshots that wait for all sockets together; 0: 512 MiB

	Metrics *metrics.Set // nil: a set of its own
	Logger  *slog.Logger // nil: silent
}

func (c Config) withDefaults() Config {
	defaultTo := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	defaultTo(&c.PingInterval, 20*time.Second)
	defaultTo(&c.SilenceTimeout, 60*time.Second)
	defaultTo(&c.WriteTimeout, 5*time.Second)
	defaultTo(&c.HeartbeatInterval, time.Second)
	defaultTo(&c.ResumeTimeout, 10*time.Second)
	if c.MaxConns == 0 {
		c.MaxConns = 16384
	}
	if c.MaxConnsPerClient == 0 {
		c.MaxConnsPerClient = 20
	}
	if c.OutboxBytes == 0 {
		c.OutboxBytes = 32 << 20
	}
	if c.SnapshotBytes == 0 {
		c.SnapshotBytes = 512 << 20
	}
	if c.Metrics == nil {
		c.Metrics = metrics.NewSet()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Hub tells account updates to subscribers.
type Hub struct {
	config Config
	meters *meters
	seats  *seats
	conns  sync.WaitGroup // one for every connection's reader
	copies unshared

	mu     sync.Mutex
	closed bool // no new subscribers
	head   *ledger.Head
	feed   feed
	levels [ledger.Commitments]audience
	told   [ledger.Commitments]ledger.Seq // the newest seq of each level; it never falls
}

// New returns a hub without subscribers. It starts nothing.
func New(config Config) *Hub {
	h := &Hub{config: config.withDefaults()}
	h.copies.limitBytes = int64(h.config.SnapshotBytes)
	h.meters = newMeters(h.config.Metrics)
	h.seats = newSeats(h.config.MaxConns, h.config.MaxConnsPerClient)
	for i := range h.levels {
		h.levels[i] = newAudience()
	}
	return h
}

// Publish tells a publication to all subscribers. It is called in log order, from one
// goroutine, and never waits for a socket.
func (h *Hub) Publish(p *ledger.Publication) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.head = p.Head
	for _, e := range h.feed.take(p) {
		h.levels[e.level].hear(e)
		h.told[e.level] = max(h.told[e.level], e.lastSeq)
	}
}

// positionLocked returns where a level stands: the newest slot and the newest seq told there.
// Before anything was published both are 0.
func (h *Hub) positionLocked(level ledger.Commitment) (slot ledger.Slot, seq ledger.Seq) {
	if h.head == nil {
		return 0, 0
	}
	// After a rollback the tip names an older block, but what was told of it is newer.
	tip := h.head.Tip(level)
	return tip.Slot, max(tip.Seq, h.told[level])
}

// join adds a subscriber, which goes on behind the seq it has seen if it says so; false when
// the hub is closing.
func (h *Hub) join(s *subscriber, resume ledger.Opt[ledger.Seq]) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.levels[s.level].add(s)
	if resume.Known {
		s.resumeLocked(resume.Value, noID)
	}
	h.conns.Add(1)
	return true
}

// leave removes a subscriber.
func (h *Hub) leave(s *subscriber) {
	h.mu.Lock()
	h.levels[s.level].remove(s)
	h.mu.Unlock()
	h.conns.Done()
}

// Shutdown closes every connection with 1001 and waits until all are gone. When ctx ends
// first it cuts off the rest and returns ctx's error.
func (h *Hub) Shutdown(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	var all []*subscriber
	for i := range h.levels {
		for s := range h.levels[i].all {
			all = append(all, s)
		}
	}
	h.mu.Unlock()
	for _, s := range all {
		s.outbox.close(endShutdown)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		h.conns.Wait()
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		for _, s := range all {
			s.cut()
		}
		<-gone
		return ctx.Err()
	}
}

// seats count connections against the caps. A seat is taken before the upgrade, so that a
// refusal is still an HTTP answer, and held until the connection ends. Should the
// handshake's answer never be written, nobody comes to sit down: such seats expire.
type seats struct {
	total, perClient int

	mu      sync.Mutex
	taken   int
	clients map[netip.Addr]int
	pending map[*seat]time.Time // until when somebody has to sit down
}

// seatTimeout is longer than writing a handshake's answer can take.
const seatTimeout = 30 * time.Second

// seat is one place. That of an exempt client is not counted.
type seat struct {
	client  netip.Addr
	counted bool
}

func newSeats(total, perClient int) *seats {
	return &seats{
		total: total, perClient: perClient,
		clients: make(map[netip.Addr]int), pending: make(map[*seat]time.Time),
	}
}

// take reserves a seat. Exempt clients are above both caps.
func (s *seats) take(client netip.Addr, exempt bool, now time.Time) (*seat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, until := range s.pending {
		if now.After(until) {
			s.freeLocked(p)
		}
	}
	place := &seat{client, !exempt}
	if place.counted {
		switch {
		case s.taken >= s.total:
			return nil, errFull
		case s.clients[client] >= s.perClient:
			return nil, errClientFull
		}
		s.taken++
		s.clients[client]++
	}
	s.pending[place] = now.Add(seatTimeout)
	return place, nil
}

// sit claims a reserved seat; false if it expired.
func (s *seats) sit(place *seat) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.pending[place]
	delete(s.pending, place)
	return ok
}

// free gives a seat back.
func (s *seats) free(place *seat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freeLocked(place)
}

func (s *seats) freeLocked(place *seat) {
	delete(s.pending, place)
	if !place.counted {
		return
	}
	s.taken--
	if s.clients[place.client]--; s.clients[place.client] == 0 {
		delete(s.clients, place.client)
	}
}
