package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/upstream"
)

// F21, F28: health names why no block comes, until one does.
func TestHealthTellsWhyALiveSourceStandsStill(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		n, up := startNode(t, partial(), Config{Shards: 1}), new(upstream.Stats)
		n.source.trouble = up.Trouble // which tells of its trouble as real ones do
		synctest.Wait()
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
