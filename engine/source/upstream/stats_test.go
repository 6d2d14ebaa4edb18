package upstream

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

func TestConnectionsAreCountedByCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Stats
		if got := s.Snapshot(); got.Connected || !got.Since.IsZero() || s.Peers() != 0 {
			t.Errorf("before anything: %+v, peers %d", got, s.Peers())
		}
		start := time.Now()
		s.Disconnected(Dial)
		time.Sleep(3 * time.Second)
		s.Disconnected(RateLimited)
		if got := s.Snapshot(); !got.Since.Equal(start) || got.Errors[Dial] != 1 || got.Errors[RateLimited] != 1 {
			t.Errorf("after two failed attempts: %+v, want disconnected since the first", got)
		}
		s.Connected()
		s.Connected() // said again: nothing new
		s.Disconnected(Stalled)
		s.Connected()
		got := s.Snapshot()
		if !got.Connected || got.Connects != 2 || got.Reconnects != 1 || got.Errors[Stalled] != 1 || s.Peers() != 1 {
			t.Errorf("after a reconnect: %+v, peers %d", got, s.Peers())
		}
		s.Failed(Server)
		if got := s.Snapshot(); !got.Connected || got.Errors[Server] != 1 {
			t.Errorf("after an error that ends no connection: %+v", got)
		}
	})
}

func TestLagIsHowLongTheNodeIsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Stats
		check := func(when string, node, slots ledger.Slot, lag time.Duration) {
			t.Helper()
			if got := s.Snapshot(); got.UpstreamSlot != node || got.LagSlots != slots || got.Lag != lag {
				t.Errorf("%s: upstream %d, lag %d slots, %v, want %d, %d and %v",
					when, got.UpstreamSlot, got.LagSlots, got.Lag, node, slots, lag)
			}
		}
		s.Saw(100)
		check("before anything is sealed", 100, 0, 0)
		s.Resumed(100)
		time.Sleep(time.Minute)
		check("level with the node", 100, 0, 0)
		s.Saw(102) // 101 was skipped, or its status was lost
		time.Sleep(time.Second)
		s.Saw(103)
		s.Saw(99) // late: it does not count
		time.Sleep(time.Second)
		check("behind", 103, 3, 2*time.Second)
		s.Sealed(102, 1)
		check("one behind", 103, 1, time.Second)
		last := ledger.Slot(103 + 2*seenSlots)
		for slot := ledger.Slot(104); slot <= last; slot++ {
			time.Sleep(time.Second)
			s.Saw(slot)
		}
		check("far behind: what is remembered", last, last-102, (seenSlots-1)*time.Second)
		s.SlotRegressed(105)
		check("taken back", 105, 3, 0)
		time.Sleep(time.Second)
		s.Saw(106)
		check("later", 106, 4, time.Second)
	})
}

func TestTroubleNamesTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Stats
		check := func(when string, parts ...string) {
			t.Helper()
			got := s.Trouble()
			if len(parts) == 0 && got != "" {
				t.Errorf("%s: trouble %q, want none", when, got)
			}
			for _, part := range parts {
				ledgertest.Contains(t, got, part, "%s: the trouble", when)
			}
		}
		check("at the start", "not connected yet")
		s.Halted(RateLimited)
		check("no block from the start", "no block can be had since 2000-01-01T00:00:00Z: "+RateLimited.Reason())
		time.Sleep(time.Minute)
		s.Halted(Unavailable)
		check("no block for another reason", "no block can be had since 2000-01-01T00:00:00Z: "+Unavailable.Reason())
		s.Disconnected(Dial)
		check("no node", "not connected since 2000-01-01T00:01:00Z", Dial.Reason())
		s.Connected()
		s.Recovered()
		check("connected")
		s.GapFound(7, 9)
		check("a gap", "after 7, up to 9", "are being filled")
		s.GapFound(7, 12)
		s.Disconnected(Closed)
		check("a gap, and no node", "not connected", Closed.Reason())
		s.Connected()
		s.GapStuck(OutOfRange)
		check("a gap that stays", "after 7, up to 12", "cannot be filled", OutOfRange.Reason())
		s.GapFound(7, 12)
		check("somebody is at it again", "are being filled")
		s.GapRepaired()
		s.GapRepaired()
		s.GapStuck(Server)
		check("repaired")
		s.Resumed(20)
		check("no slot of the node is known yet")
		s.Saw(18)
		check("a node that is behind", "the node is at slot 18, behind slot 20 that is held here")
		s.GapFound(20, 21)
		check("a gap behind it", "after 20, up to 21")
		s.GapRepaired()
		s.Limited(6500 * time.Millisecond)
		check("a limit", "the node limits our requests, asked to wait 7 s")
		s.Limited(0)
		check("a limit without a time", "the node limits our requests")
		s.Halted(RateLimited)
		s.Saw(25)
		check("a limit that lasts", "the node limits our requests; the node is at slot 25, 5 slots ahead")
		s.Connected()
		check("an answer", "no block can be had", "; the node is at slot 25, 5 slots ahead")
		s.GapFound(20, 22)
		s.GapStuck(OutOfRange)
		check("a gap that stays, and no block", OutOfRange.Reason())
		s.GapRepaired()
		s.SlotRegressed(20)
		s.Recovered()
		check("a node that is there")
		if got := s.Snapshot(); got.Gaps != 3 || got.GapSlots != 8 || got.GapsRepaired != 3 || got.Gap.Open() {
			t.Errorf("gaps of five slots, of one and of two, all repaired, are told as %+v", got)
		}
	})
}

func TestEveryKindHasItsWords(t *testing.T) {
	seen := make(map[string]bool)
	for k := range Kinds {
		if k.String() == "" || k.Reason() == "" || seen[k.String()] || seen[k.Reason()] {
			t.Errorf("kind %d: name %q, reason %q", k, k, k.Reason())
		}
		seen[k.String()], seen[k.Reason()] = true, true
	}
}

func TestStatsAreSafeForEverybody(t *testing.T) {
	var s Stats
	var all sync.WaitGroup
	const each = 1000
	for range 4 {
		all.Go(func() {
			for i := range each {
				s.Received(10)
				s.Sealed(ledger.Slot(i), 1)
				s.Count(func(n *Snapshot) { n.Duplicates, n.Dead, n.Replays = n.Duplicates+1, n.Dead+1, n.Replays+1 })
				s.Failed(Garbage)
				_, _ = s.Snapshot(), s.Trouble()
			}
		})
	}
	all.Wait()
	got := s.Snapshot()
	const sum = 4 * each
	if got.Messages != sum || got.Bytes != 10*sum || got.Blocks != sum || got.Duplicates != sum || got.Dead != sum ||
		got.Replays != sum || got.Errors[Garbage] != sum || got.SealedSlot != each-1 || got.UpstreamSlot != each-1 {
		t.Errorf("%d reports of each are told as %+v", sum, got)
	}
}
