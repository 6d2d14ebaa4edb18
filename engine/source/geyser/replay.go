package geyser

import (
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/upstream"
)

// oneRequestFor is for how long a node is believed to take one request for filters.
const oneRequestFor = 10 * time.Minute

// subscription returns what to ask for now: what is not confirmed is shown again.
func (f *follower) subscription() subscription {
	sub := subscription{accounts: f.config.Accounts, sliced: !f.config.WholeData && !f.node().wholeData, noTransactions: f.config.NoTransactions, skipVotes: f.config.SkipVotes}
	if f.verdict.Rooted && !f.node().replayOff {
		sub.from = ledger.Some(f.verdict.Confirmed.Slot) // it has a block: some servers refuse other slots (Richat, channel.rs)
	}
	return sub
}

// takesOneRequest reports whether the node is not asked again on an open call.
func (f *follower) takesOneRequest() bool { return time.Now().Before(f.node().oneRequest) }

// askedAgain is a replay that a session asked for on its connection, because a block came in part.
type askedAgain struct {
	slot ledger.Slot // of that block; 0: none was asked for
	at   time.Time
}

// replay has the node show again what came in part, the lowest of some blocks and what follows, and reports whether that
// may still come. Each block is asked for once in a session.
func (f *follower) replay(conn *connection, after, upTo ledger.Slot) bool {
	slot, found := f.assembler.InPart(after, upTo)
	switch {
	case !found || f.node().replayOff || f.takesOneRequest():
		return false
	case slot > f.again.slot:
		sub := f.subscription()
		sub.from = ledger.Some(slot)
		conn.replay(sub)
		f.stats.Count(func(n *upstream.Snapshot) { n.Replays++ })
		f.again = askedAgain{slot, time.Now()}
	}
	return time.Since(f.again.at) < idleTimeout
}
