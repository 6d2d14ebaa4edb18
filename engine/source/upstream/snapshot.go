package upstream

import (
	"fmt"
	"math"
	"slices"
	"time"

	"ledgerd/engine/ledger"
)

// Snapshot is what Stats were at one moment.
type Snapshot struct {
	Connected bool
	Since     time.Time // when Connected last changed; zero before the first attempt ended

	Nodes []string // the hosts and ports of several nodes, of which Node is followed; not to be changed
	Node  string

	Connects, Reconnects               uint64
	Messages, Bytes                    uint64
	Blocks, Duplicates, Dead           uint64
	Replays                            uint64 // connections asked to begin with an earlier slot
	Gaps, GapSlots, GapsRepaired       uint64
	UpstreamSlot, SealedSlot, LagSlots ledger.Slot
	// Lag is for how long the node has been past the newest sealed slot, 0 where it is not.
	Lag    time.Duration
	Gap    Gap
	Errors [Kinds]uint64
}

// Snapshot returns the figures as they stand now.
func (s *Stats) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.now
	if n.SealedSlot != 0 && n.UpstreamSlot > n.SealedSlot {
		n.LagSlots = n.UpstreamSlot - n.SealedSlot
		past := slices.IndexFunc(s.seen, func(at sighting) bool { return at.slot > n.SealedSlot })
		n.Lag = time.Since(s.seen[past].at)
	}
	return n
}

// Trouble returns one sentence about what keeps the source from going on and how far the node is ahead meanwhile, "" if
// it knows of nothing. Anybody may read it: it names no address.
func (s *Stats) Trouble() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	why := s.troubleLocked()
	node, held := s.now.UpstreamSlot, s.now.SealedSlot
	switch {
	case why != "" && held != 0 && node > held:
		return fmt.Sprintf("%s; the node is at slot %d, %d slots ahead", why, node, node-held)
	case why == "" && node != 0 && node < held:
		return fmt.Sprintf("the node is at slot %d, behind slot %d that is held here", node, held)
	}
	return why
}

func (s *Stats) troubleLocked() string {
	since := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	switch gap := s.now.Gap; {
	case gap.Open() && gap.Stuck:
		return fmt.Sprintf("the slots after %d, up to %d, are missing and cannot be filled: %s", gap.After, gap.UpTo, gap.Why.Reason())
	case s.limited && s.asked > 0:
		return fmt.Sprintf("the node limits our requests, asked to wait %d s", int(math.Ceil(s.asked.Seconds())))
	case s.limited:
		return "the node limits our requests"
	case !s.now.Connected && !s.now.Since.IsZero():
		return fmt.Sprintf("the source is not connected since %s: %s", since(s.now.Since), s.why.Reason())
	case !s.haltedAt.IsZero():
		return fmt.Sprintf("no block can be had since %s: %s", since(s.haltedAt), s.haltedBy.Reason())
	case !s.now.Connected:
		return "the source is not connected yet"
	case gap.Open():
		return fmt.Sprintf("the slots after %d, up to %d, are missing and are being filled since %s", gap.After, gap.UpTo, since(gap.Since))
	}
	return ""
}
