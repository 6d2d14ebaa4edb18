package upstream

import (
	"sync"
	"sync/atomic"
	"time"

	"ledgerd/engine/ledger"
)

// seenSlots is for how many of the newest slots it is remembered when they were first seen.
// A source that is further behind has its lag told as at least the oldest of them.
const seenSlots = 512

// Stats are the figures of one source. See the package comment.
type Stats struct {
	messages, bytes, blocks, duplicates, dead, replays atomic.Uint64
	gaps, gapSlots, gapsRepaired                       atomic.Uint64
	connects, reconnects                               atomic.Uint64
	errors                                             [Kinds]atomic.Uint64
	upstreamSlot, sealedSlot                           atomic.Uint64

	mu        sync.Mutex
	connected bool
	since     time.Time // when connected last changed
	why       Kind      // while not connected: the newest failure
	failed    bool      // why is known
	halted    bool      // connected, and no block can be had
	haltedAt  time.Time
	haltedBy  Kind
	limited   bool // the newest answer turned us down for our rate
	asked     time.Duration
	gap       Gap
	seen      [seenSlots]sighting // by slot modulo seenSlots
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
	if s.connected {
		return
	}
	s.connected, s.since, s.failed = true, time.Now(), false
	if s.connects.Add(1) > 1 {
		s.reconnects.Add(1)
	}
}

// Disconnected reports that the connection is lost, or could not be made, and why.
func (s *Stats) Disconnected(why Kind) {
	s.Failed(why)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connected || s.since.IsZero() {
		s.connected, s.since = false, time.Now()
	}
	s.why, s.failed = why, true
}

// Failed reports an error that ends no connection, such as one call that was turned down.
func (s *Stats) Failed(why Kind) {
	if why < Kinds {
		s.errors[why].Add(1)
	}
}

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
	s.messages.Add(1)
	s.bytes.Add(uint64(max(bytes, 0)))
}

// Saw reports that the node works on a slot, or is past it.
func (s *Stats) Saw(slot ledger.Slot) {
	if uint64(slot) <= s.upstreamSlot.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if uint64(slot) <= s.upstreamSlot.Load() {
		return
	}
	s.upstreamSlot.Store(uint64(slot))
	s.seen[slot%seenSlots] = sighting{slot, time.Now()}
}

// Fell reports that the node's newest slot is this one after all: what was seen above it is not so, or is gone.
func (s *Stats) Fell(slot ledger.Slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.upstreamSlot.Store(uint64(slot))
	s.seen[slot%seenSlots] = sighting{slot, time.Now()}
}

// Halted reports that no block can be had for a while now, and why. Going ends that.
func (s *Stats) Halted(why Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.halted {
		s.halted, s.haltedAt = true, time.Now()
	}
	s.haltedBy = why
}

// Going reports that blocks can be had again.
func (s *Stats) Going() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halted = false
}

// Resumed reports where the source goes on; it has everything up to that slot.
func (s *Stats) Resumed(slot ledger.Slot) { raise(&s.sealedSlot, uint64(slot)) }

// Sealed reports a whole block, about to be emitted.
func (s *Stats) Sealed(slot ledger.Slot) {
	s.blocks.Add(1)
	s.Saw(slot)
	raise(&s.sealedSlot, uint64(slot))
}

// Duplicate reports something that had come already and was dropped.
func (s *Stats) Duplicate() { s.duplicates.Add(1) }

// Dead reports a slot that the node gave up.
func (s *Stats) Dead() { s.dead.Add(1) }

// Replayed reports that a connection was asked to begin with an earlier slot.
func (s *Stats) Replayed() { s.replays.Add(1) }

// GapFound reports that up to upTo slots after a held one may be missing, and that somebody is
// at it. While a gap is open it only grows.
func (s *Stats) GapFound(after, upTo ledger.Slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.gap.Open() {
		s.gaps.Add(1)
		s.gap = Gap{After: after, UpTo: after, Since: time.Now()}
	}
	if upTo > s.gap.UpTo {
		s.gapSlots.Add(uint64(upTo - s.gap.UpTo))
		s.gap.UpTo = upTo
	}
	s.gap.Stuck = false
}

// GapStuck reports that the open gap cannot be filled as things are.
func (s *Stats) GapStuck(why Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gap.Open() {
		s.gap.Stuck, s.gap.Why = true, why
	}
}

// GapRepaired reports that nothing is missing any more.
func (s *Stats) GapRepaired() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gap.Open() {
		s.gapsRepaired.Add(1)
		s.gap = Gap{}
	}
}

// Peers returns how many upstreams are connected: 0 or 1.
func (s *Stats) Peers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connected {
		return 1
	}
	return 0
}

func raise(n *atomic.Uint64, to uint64) {
	for {
		old := n.Load()
		if to <= old || n.CompareAndSwap(old, to) {
			return
		}
	}
}
