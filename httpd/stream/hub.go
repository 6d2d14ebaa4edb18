package stream

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/budget"
)

// Hub delivers account updates to subscribers.
type Hub struct {
	config  Config
	meters  meters
	seats   *seats
	awaited sync.WaitGroup // one for every connection that Shutdown waits for
	memory  *budget.Part
	turns   turns
	started time.Time
	closed  atomic.Bool              // no new subscribers
	origins atomic.Pointer[[]string] // see SetOrigins

	stale     [ledger.Commitments]staleness
	unlinking sync.Mutex // one subscriber's names at a time
	pastBytes int
	feed      feed // used by Publish alone

	mu      sync.Mutex
	pending []published // to be delivered by the goroutine that asks the ledger for mints
	// pendingBytes is about what those take until they are delivered; hasRoom is signalled for each delivery.
	pendingBytes int
	hasRoom      *sync.Cond
	delivering   bool // there is one
	head         *ledger.Head
	levels       [ledger.Commitments]audience
	connections  map[*connection]struct{}
	recent       [ledger.Commitments]recent
	recentBytes  int               // what those take together
	topics       map[string]*topic // by their keys
	lastTopic    uint64
	tokens       set[recipient]                 // want the facts of token accounts
	delivered    [ledger.Commitments]ledger.Seq // the newest seq of each level; it never falls
}

// New returns a hub without subscribers. It starts nothing.
func New(config Config) *Hub {
	config = config.withDefaults()
	h := &Hub{
		config: config, memory: &config.Memory.Sockets, feed: feed{levels: ledger.Commitments, blocks: true}, pastBytes: pastBytes,
		started: time.Now(), tokens: make(set[recipient]), connections: make(map[*connection]struct{}), topics: make(map[string]*topic),
	}
	h.seats = &seats{total: defaultConns, perClient: defaultConnsPerClient, clients: make(map[netip.Addr]*peer)}
	h.SetOrigins(nil)
	h.hasRoom = sync.NewCond(&h.mu)
	h.turns = newTurns(allPastReaders, allSnapshotReaders)
	for i := range h.levels {
		h.stale[i].turn = semaphore.NewWeighted(1)
		h.levels[i] = newAudience(&h.config)
		h.recent[i].limitBytes = h.config.RecentBytes
	}
	h.meters = h.newMeters()
	return h
}

// now returns the time since the hub was made.
func (h *Hub) now() time.Duration { return time.Since(h.started) }

// HasHead reports whether anything was published: answers before that name no slot.
func (h *Hub) HasHead() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.head != nil
}

// positionLocked returns where a level stands.
func (h *Hub) positionLocked(level ledger.Commitment) (at standing) {
	if h.head == nil {
		return at
	}
	// After a rollback the tip names an older block, but what was delivered of it is newer.
	tip := h.head.Tip(level)
	return standing{h.head, tip.Slot, max(tip.Seq, h.delivered[level]), h.recent[level].total()}
}

// reachedLocked returns the seq that all frames up to now belong to, also in the middle of a
// publication.
func (h *Hub) reachedLocked(level ledger.Commitment) ledger.Seq {
	if h.recent[level].begun {
		return h.delivered[level]
	}
	return h.positionLocked(level).seq
}

// each calls do for every connection, with the lock held.
func (h *Hub) each(do func(*connection)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.connections {
		do(c)
	}
}

// EndRevoked ends the connections of clients that may have none any more.
func (h *Hub) EndRevoked() {
	h.each(func(c *connection) {
		if c.seat.isRevoked() {
			c.outbox.close(endRevoked)
		}
	})
}

// cutTime is how long a connection that was cut off may take to be gone. One whose handshake is not answered yet the server has to end.
const cutTime = time.Second

// Shutdown closes every connection with 1001 and waits until all are gone. When ctx ends
// first it cuts off the rest and returns ctx's error.
func (h *Hub) Shutdown(ctx context.Context) error {
	h.closed.Store(true)
	h.each(func(c *connection) { c.outbox.close(endShutdown) })
	gone := make(chan struct{})
	go func() {
		h.awaited.Wait()
		close(gone)
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
	}
	h.each((*connection).cut)
	select {
	case <-gone:
	case <-time.After(cutTime):
	}
	return ctx.Err()
}
