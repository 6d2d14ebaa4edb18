package stream

import (
	"context"
	"log/slog"
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
	History History  // nil: resume goes back as far as RecentBytes
	Origins []string // Origin headers a browser may come with; empty: any

	MaxConns          int // 0: 16384
	MaxConnsPerClient int // 0: 20

	PingInterval      time.Duration // 0: 20 s
	SilenceTimeout    time.Duration // a peer that shows nothing for so long is gone; 0: 60 s
	WriteTimeout      time.Duration // a socket that takes no byte for so long is reset; 0: 5 s
	HeartbeatInterval time.Duration // 0: 1 s
	ResumeTimeout     time.Duration // how long to wait for a seq that is not here yet; 0: 10 s
	RingBytes         int           // newest frames of each level and form, if anybody follows them; 0: 64 MiB
	RecentBytes       int           // about what is kept of each level to resume from; 0: 64 MiB
	OutboxBytes       int           // what may wait for one socket beside the ring; 0: 32 MiB
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
	if c.RingBytes == 0 {
		c.RingBytes = 64 << 20
	}
	if c.RecentBytes == 0 {
		c.RecentBytes = 64 << 20
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
	conns  sync.WaitGroup // one for every subscriber
	copies unshared
	pasts  chan struct{} // a token for each that reads the log

	pastBytes int

	mu     sync.Mutex
	closed bool // no new subscribers
	head   *ledger.Head
	feed   feed
	levels [ledger.Commitments]audience
	recent [ledger.Commitments]recent
	told   [ledger.Commitments]ledger.Seq // the newest seq of each level; it never falls
}

// New returns a hub without subscribers. It starts nothing.
func New(config Config) *Hub {
	h := &Hub{config: config.withDefaults(), pasts: make(chan struct{}, pastReaders), pastBytes: pastBytes}
	h.copies.limitBytes = int64(h.config.SnapshotBytes)
	h.meters = newMeters(h.config.Metrics)
	h.seats = newSeats(h.config.MaxConns, h.config.MaxConnsPerClient)
	for i := range h.levels {
		h.levels[i] = newAudience(h.config.RingBytes)
		h.recent[i].limitBytes = h.config.RecentBytes
	}
	return h
}

// Publish tells a publication to all subscribers. It is called in log order, from one
// goroutine, and never waits for a socket.
func (h *Hub) Publish(p *ledger.Publication) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.head = p.Head
	h.beginLocked(p)
	for _, e := range h.feed.take(p) {
		h.recent[e.level].keep(e)
		h.levels[e.level].hear(e)
		h.told[e.level] = max(h.told[e.level], e.lastSeq)
	}
	for i := range h.levels {
		h.levels[i].wake()
	}
}

// beginLocked notes where the first block or rollback begins: from there on everything is
// kept, at levels too that hear of it later.
func (h *Hub) beginLocked(p *ledger.Publication) {
	for _, r := range p.Records {
		if h.recent[0].begun || r.Kind != ledger.BlockRecord && r.Kind != ledger.RollbackRecord {
			continue
		}
		for i := range h.recent {
			h.recent[i].begin(r.FirstSeq - 1)
		}
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

// toldLocked returns the seq that all frames up to now belong to, also in the middle of a
// publication.
func (h *Hub) toldLocked(level ledger.Commitment) ledger.Seq {
	if h.recent[level].begun {
		return h.told[level]
	}
	_, seq := h.positionLocked(level)
	return seq
}

// join adds a subscriber, which goes on behind the seq it has seen if it says so. It returns
// why the connection ends instead: the hub is closing, or there was a fault of ours.
func (h *Hub) join(s *subscriber, resume ledger.Opt[ledger.Seq]) (end *closing) {
	defer func() {
		if p := recover(); p != nil {
			h.panicked(p)
			h.leave(s)
			h.conns.Done()
			end = &endInternal
		}
	}()
	wanted := s.wants
	if resume.Known {
		wanted = wanted.clone()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return &endShutdown
	}
	h.conns.Add(1)
	s.sent = h.toldLocked(s.level)
	h.levels[s.level].add(s)
	if resume.Known {
		s.resumeLocked(resume.Value, wanted, noID)
	}
	return nil
}

// leave removes a subscriber.
func (h *Hub) leave(s *subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.levels[s.level].remove(s)
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
