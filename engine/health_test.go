package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/upstream"
	"ledgerd/snapshot/vfs/vfstest"
)

// watch starts a node that follows a scripted live source, which tells of its trouble as real ones do.
func watch(t *testing.T, c Config) (n *subject, up *upstream.Stats) {
	t.Helper()
	c.Shards, up = 1, new(upstream.Stats)
	n = startNode(t, partial(), c)
	n.source.trouble = up.Trouble
	synctest.Wait()
	return n, up
}

// F21, F28: health names why no block comes, until one does.
func TestHealthTellsWhyALiveSourceStandsStill(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n, up := watch(t, Config{})
		n.mustSay("starting", "not connected yet")
		up.Disconnected(upstream.Dial)
		time.Sleep(time.Minute)
		n.mustSay("starting", "not connected since 2000-01-01T00:00:00Z", upstream.Dial.Reason())
		up.Connected()
		n.mustSay("starting", "nothing comes")

		root := rootBlock(100)
		b101 := child(root, 101, 0)
		n.send(root, b101)
		n.mustSay() // blocks come

		up.Disconnected(upstream.Closed)
		time.Sleep(stallAfter)
		n.mustSay() // a lost connection within the time that a reconnect has
		time.Sleep(time.Nanosecond)
		n.mustSay("no block for more than 10s, the newest is of slot 101", "not connected since", upstream.Closed.Reason())
		up.Connected()
		n.mustSay("is connected, and nothing comes")
		n.send(root, b101, status(b101, ledger.StatusConfirmed))
		n.mustSay("blocks come, but")

		b102 := child(b101, 102, 0)
		b103 := child(b102, 103, 0)
		up.GapFound(101, 102)
		n.send(b103)
		n.mustSay("slots after 101, up to 102, are missing and are being filled since")
		up.GapStuck(upstream.OutOfRange)
		n.mustSay("cannot be filled", upstream.OutOfRange.Reason())
		up.GapRepaired()
		n.mustSay("parents are missing")
		n.send(b102)
		n.mustSay() // the gap is filled
		ledgertest.Equal(t, n.Head().Tip(ledger.Processed).Slot, 103, "the slot of the tip")
	})
}

// F21: TestHealthDoesNotFlapOnSkippedSlots looks ten times a second while slots come at their pace, late,
// or not at all, and forks are undone.
func TestHealthDoesNotFlapOnSkippedSlots(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n, up := watch(t, Config{})
		up.Connected()
		tip := rootBlock(100)
		n.send(tip)
		for i, wait := range []time.Duration{400, 800, 1200, 4000, 400, 9900, 400, 10000, 400} {
			for range wait / 100 {
				time.Sleep(100 * time.Millisecond)
				n.mustSay() // between blocks
			}
			next := child(tip, tip.Slot+ledger.Slot(wait/400), 0)
			if i%3 == 2 { // the tip was on a fork
				aside := child(tip, tip.Slot+1, 1)
				n.send(aside)
				next.Slot++
			}
			n.send(next)
			n.mustSay() // a block
			tip = next
		}
	})
}

// TestOnlyBlocksAreSignsOfLife has a source talk without end and show no block.
func TestOnlyBlocksAreSignsOfLife(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		u := newFakeNode(100, lamports(key(1), 1))
		n, up := watch(t, Config{Fetcher: u})
		up.Connected()
		root := rootBlock(100)
		n.send(root)
		for i := range 11 {
			time.Sleep(time.Second)
			n.send(root, &ledger.SlotStatus{Slot: ledger.Slot(101 + i), Status: ledger.StatusConfirmed}, &ledger.BaseState{Slot: ledger.Slot(101 + i)})
			_, _, _ = n.Account(ledger.Query{}, key(i))
		}
		n.mustSay("no block for more than 10s")
	})
}

// TestRestartedNodeIsHealthyWithItsFirstBlock holds that the old state is shown, and not called fresh.
func TestRestartedNodeIsHealthyWithItsFirstBlock(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewMemory()
		root := rootBlock(100, lamports(key(1), 5))
		n, _ := watch(t, onDisk(t, disk, Config{}))
		n.send(root)
		n.mustSay() // the first block
		n.mustStop()

		n, up := watch(t, onDisk(t, disk.Crash(1, 1), Config{}))
		n.mustSay("starting: no block has come since the start, the newest is of slot 100", "not connected yet")
		if a, _, err := n.Account(ledger.Query{}, key(1)); err != nil || a.Lamports != 5 {
			t.Errorf("reads: %d lamports, %v", a.Lamports, err)
		}
		up.Connected()
		n.send(root)
		n.mustSay("starting")
		n.send(child(root, 101, 0))
		n.mustSay() // a block
	})
}
