package upstream

import (
	"slices"
	"sync"
	"time"

	"ledgerd/engine/figures"
	"ledgerd/engine/ledger"
)

// seenSlots is how many of the newest slots that were seen are remembered with their time.
// A source that is further behind has its lag told as at least the oldest of them.
const seenSlots = 512

// Stats are the figures of one source. See the package comment.
type Stats struct {
	mu       sync.Mutex
	now      Snapshot  // without LagSlots and Lag
	why      Kind      // while not connected: the newest failure
	haltedAt time.Time // connected, and no block can be had since then; zero while they can
	haltedBy Kind
	limited  bool          // the newest answer turned us down for our rate
	asked    time.Duration // to wait
	seen     []sighting    // the newest, in the order of their slots; the last is of now.UpstreamSlot
}

// Use reports which of some nodes is followed from now on.
func (s *Stats) Use(nodes []string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.Nodes, s.now.Node = nodes, nodes[n]
}

// sighting is when a slot was first seen upstream.
type sighting struct {
	slot ledger.Slot
	at   time.Time
}

// Gap is a part of the chain that the source knows to be missing.
type Gap struct {
	After ledger.Slot // the newest slot held before it
	UpTo  ledger.Slot // the last slot that may be missing
	Since time.Time   // zero while nothing is missing

	Stuck bool // nobody has what is missing, or nobody can be asked; Why says more
	Why   Kind
}

// Open reports whether something is missing.
func (g Gap) Open() bool { return !g.Since.IsZero() }

// Connected reports that there is a connection over which something came.
func (s *Stats) Connected() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limited = false
	if s.now.Connected {
		return
	}
	s.now.Reconnects = s.now.Connects
	s.now.Connects++
	s.now.Connected, s.now.Since = true, time.Now()
}

// Disconnected reports that the connection is lost, or could not be made, and why.
func (s *Stats) Disconnected(why Kind) {
	s.Failed(why)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now.Connected || s.now.Since.IsZero() {
		s.now.Connected, s.now.Since = false, time.Now()
	}
	s.why = why
}

// Failed reports an error that ends no connection, such as one call that was turned down.
func (s *Stats) Failed(why Kind) { s.Count(func(n *Snapshot) { n.Errors[why]++ }) }

// Limited reports that the node turned us down for our rate, and for how long it asked to wait, 0 if it did not say.
// Connected ends that.
func (s *Stats) Limited(wait time.Duration) {
	s.Failed(RateLimited)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limited, s.asked = true, wait
}

// Received reports a message, or an answer, of so many bytes.
func (s *Stats) Received(bytes int) {
	s.Count(func(n *Snapshot) { n.Messages, n.Bytes = n.Messages+1, n.Bytes+uint64(max(bytes, 0)) })
}

// Saw reports that the node works on a slot, or is past it.
func (s *Stats) Saw(slot ledger.Slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slot > s.now.UpstreamSlot {
		s.seeLocked(slot)
	}
}

// At reports that the node says that this is its newest slot: what was seen above it is not so, or is gone.
func (s *Stats) At(slot ledger.Slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seeLocked(slot)
}

func (s *Stats) seeLocked(slot ledger.Slot) {
	s.now.UpstreamSlot = slot
	for len(s.seen) > 0 && s.seen[len(s.seen)-1].slot >= slot {
		s.seen = s.seen[:len(s.seen)-1]
	}
	if len(s.seen) == seenSlots {
		s.seen = slices.Delete(s.seen, 0, 1)
	}
	s.seen = append(s.seen, sighting{slot, time.Now()})
}

// Halted reports that no block can be had for a while now, and why. Recovered ends that.
func (s *Stats) Halted(why Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.haltedAt.IsZero() {
		s.haltedAt = time.Now()
	}
	s.haltedBy = why
}

// Recovered reports that blocks can be had again.
func (s *Stats) Recovered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.haltedAt = time.Time{}
}

// Resumed reports where the source goes on; it has everything up to that slot.
func (s *Stats) Resumed(slot ledger.Slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.SealedSlot = max(s.now.SealedSlot, slot)
}

// Sealed reports whole blocks, the newest of them of a slot.
func (s *Stats) Sealed(slot ledger.Slot, blocks uint64) {
	s.Count(func(n *Snapshot) { n.Blocks += blocks })
	s.Saw(slot)
	s.Resumed(slot)
}

// GapFound reports that the slots after a held one, up to upTo, may be missing, and that the source tries to get them.
// While a gap is open it only grows.
func (s *Stats) GapFound(after, upTo ledger.Slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gap := &s.now.Gap
	if !gap.Open() {
		s.now.Gaps++
		*gap = Gap{After: after, UpTo: after, Since: time.Now()}
	}
	if upTo > gap.UpTo {
		s.now.GapSlots += uint64(upTo - gap.UpTo)
		gap.UpTo = upTo
	}
	gap.Stuck = false
}

// GapStuck reports that the open gap cannot be filled as things are.
func (s *Stats) GapStuck(why Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now.Gap.Open() {
		s.now.Gap.Stuck, s.now.Gap.Why = true, why
	}
}

// GapRepaired reports that nothing is missing any more.
func (s *Stats) GapRepaired() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now.Gap.Open() {
		s.now.GapsRepaired++
		s.now.Gap = Gap{}
	}
}

// Peers returns how many upstreams are connected: 0 or 1.
func (s *Stats) Peers() int { return int(figures.One(s.Snapshot().Connected)) }

// Count adds to counters.
func (s *Stats) Count(add func(*Snapshot)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	add(&s.now)
}
