package engine

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/source/upstream"
	"ledgerd/snapshot/vfs/vfstest"
)

// watched is a node that follows a scripted live source, which tells of its trouble as real ones do.
type watched struct {
	*subject
	up *upstream.Stats
}

func watch(t *testing.T, c Config) watched {
	t.Helper()
	w := watched{up: new(upstream.Stats)}
	w.subject = startNode(t, partial(), c)
	w.source.trouble = w.up.Trouble
	synctest.Wait()
	return w
}

// healthSays fails the test unless health says these words, or nothing where there are none.
func (n *subject) healthSays(words ...string) {
	n.t.Helper()
	why := n.Status().Unhealthy
	if len(words) == 0 && why != "" || slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(why, w) }) {
		n.t.Fatalf("health says %q, want %q", why, words)
	}
}

// F21, F28: health names why no block comes, until one does.
func TestHealthTellsWhyALiveSourceStandsStill(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := watch(t, Config{Shards: 1})
		w.healthSays("starting", "not connected yet")
		w.up.Disconnected(upstream.Dial)
		time.Sleep(time.Minute)
		w.healthSays("starting", "not connected since 2000-01-01T00:00:00Z", upstream.Dial.Reason())
		w.up.Connected()
		w.healthSays("starting", "nothing comes")

		root := rootBlock(100)
		b101 := child(root, 101, 0)
		w.send(root, b101)
		w.healthSays() // blocks come

		w.up.Disconnected(upstream.Closed)
		time.Sleep(stallAfter)
		w.healthSays() // a lost connection within the time that a reconnect has
		time.Sleep(time.Nanosecond)
		w.healthSays("no block for more than 10s, the newest is of slot 101", "not connected since", upstream.Closed.Reason())
		w.up.Connected()
		w.healthSays("is connected, and nothing comes")
		w.send(root, b101, status(b101, ledger.StatusConfirmed))
		w.healthSays("blocks come, but")

		b102 := child(b101, 102, 0)
		b103 := child(b102, 103, 0)
		w.up.GapFound(101, 102)
		w.send(b103)
		w.healthSays("slots after 101, up to 102, are missing and are being filled since")
		w.up.GapStuck(upstream.OutOfRange)
		w.healthSays("cannot be filled", upstream.OutOfRange.Reason())
		w.up.GapRepaired()
		w.healthSays("parents are missing")
		w.send(b102)
		w.healthSays() // the gap is filled
		if got := w.Head().Tip(ledger.Processed).Slot; got != 103 {
			t.Errorf("the tip is slot %d", got)
		}
	})
}

// F21: TestHealthDoesNotFlapOnSkippedSlots looks ten times a second while slots come at their pace, late,
// or not at all, and forks are undone.
func TestHealthDoesNotFlapOnSkippedSlots(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := watch(t, Config{Shards: 1})
		w.up.Connected()
		tip := rootBlock(100)
		w.send(tip)
		for i, wait := range []time.Duration{400, 800, 1200, 4000, 400, 9900, 400, 10000, 400} {
			for range wait / 100 {
				time.Sleep(100 * time.Millisecond)
				w.healthSays() // between blocks
			}
			next := child(tip, tip.Slot+ledger.Slot(wait/400), 0)
			if i%3 == 2 { // the tip was on a fork
				aside := child(tip, tip.Slot+1, 1)
				w.send(aside)
				next.Slot++
			}
			w.send(next)
			w.healthSays() // a block
			tip = next
		}
	})
}

// TestOnlyBlocksAreSignsOfLife has a source talk without end and show no block.
func TestOnlyBlocksAreSignsOfLife(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		u := newFakeNode(100, lamports(key(1), 1))
		w := watch(t, Config{Shards: 1, Fetcher: u})
		w.up.Connected()
		root := rootBlock(100)
		w.send(root)
		for i := range 11 {
			time.Sleep(time.Second)
			w.send(root, &ledger.SlotStatus{Slot: ledger.Slot(101 + i), Status: ledger.StatusConfirmed}, &ledger.BaseState{Slot: ledger.Slot(101 + i)})
			_, _, _ = w.Account(ledger.Query{}, key(i))
		}
		w.healthSays("no block for more than 10s")
	})
}

// TestRestartedNodeIsHealthyWithItsFirstBlock holds that the old state is shown, and not called fresh.
func TestRestartedNodeIsHealthyWithItsFirstBlock(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewMemory()
		root := rootBlock(100, lamports(key(1), 5))
		w := watch(t, onDisk(t, disk, Config{Shards: 1}))
		w.send(root)
		w.healthSays() // the first block
		w.mustStop()

		w = watch(t, onDisk(t, disk.Crash(1, 1), Config{Shards: 1}))
		w.healthSays("starting: no block has come since the start, the newest is of slot 100", "not connected yet")
		if a, _, err := w.Account(ledger.Query{}, key(1)); err != nil || a.Lamports != 5 {
			t.Errorf("reads: %d lamports, %v", a.Lamports, err)
		}
		w.up.Connected()
		w.send(root)
		w.healthSays("starting")
		w.send(child(root, 101, 0))
		w.healthSays() // a block
	})
}

// TestFreshNodeWithoutANodeSaysThatNoBlockHasCome starts in a fresh directory over a source that reaches nobody, twice.
func TestFreshNodeWithoutANodeSaysThatNoBlockHasCome(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewMemory()
		for range 2 {
			c := onDisk(t, disk, Config{Shards: 1})
			if err := New(c).Status().NotReady; err != ledger.ErrRecovering {
				t.Errorf("before it runs: %v", err)
			}
			w := watch(t, c)
			w.up.Disconnected(upstream.Dial)
			time.Sleep(time.Minute)
			w.healthSays("starting: no block has come since the start", upstream.Dial.Reason())
			if _, _, err := w.LatestBlock(ledger.Query{}); err != ledger.ErrNoBlock || w.Status().NotReady != err {
				t.Errorf("the latest block: %v; status %+v; want %v", err, w.Status(), ledger.ErrNoBlock)
			}
			w.mustStop()
			c.Dir.Close()
		}
	})
}
