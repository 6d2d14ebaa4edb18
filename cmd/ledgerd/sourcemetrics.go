package main

import (
	"fmt"
	"io"

	"ledgerd/engine/figures"
	"ledgerd/engine/fill"
	"ledgerd/engine/sequencer"
	"ledgerd/httpd/promtext"
)

// writeFill writes the figures of accounts that are fetched when they are asked for.
func writeFill(w io.Writer, s fill.Stats) {
	if !s.On {
		return
	}
	promtext.Each(w, "ledgerd_fill_answers_total", "counter", "Questions about accounts that were not held, by answer: a hit was fetched, a miss does not exist, and neither could be told where the node was unavailable.",
		"answer", map[string]uint64{"hit": s.Found, "miss": s.Missing, "unavailable": s.Unavailable})
	promtext.Value(w, "ledgerd_fill_fetches_total", "counter", "Questions to the node, of many accounts each.", s.Fetches)
	promtext.Value(w, "ledgerd_fill_fetch_failures_total", "counter", "Questions to the node without a usable answer.", s.Failures)
	promtext.Value(w, "ledgerd_fill_fetched_accounts_total", "counter", "Accounts the node was asked for.", s.Keys)
	promtext.Value(w, "ledgerd_fill_stale_accounts_total", "counter", "Accounts the node told as of a slot too old, and was asked for again.", s.Stale)
	promtext.Value(w, "ledgerd_fill_waiting_accounts", "gauge", "Accounts that are waited for now.", uint64(s.Waiting))
}

// writeRollbacks writes how deep rollbacks went.
func writeRollbacks(w io.Writer, s sequencer.Counters) {
	const name = "ledgerd_rollback_depth_blocks"
	figures.Head(w, name, "histogram", "Blocks undone by each rollback.")
	for i, n := range s.RollbacksUpTo {
		fmt.Fprintf(w, "%s_bucket{le=\"%d\"} %d\n", name, sequencer.RollbackDepths[i], n)
	}
	fmt.Fprintf(w, "%s_bucket{le=\"+Inf\"} %d\n%s_sum %d\n%s_count %d\n", name, s.Rollbacks, name, s.Undone, name, s.Rollbacks)
}
