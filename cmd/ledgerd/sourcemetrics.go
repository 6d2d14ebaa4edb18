package main

import (
	"fmt"
	"io"

	"ledgerd/engine/fill"
	"ledgerd/engine/sequencer"
	"ledgerd/engine/source/upstream"
	"ledgerd/httpd/promtext"
)

// sourceMetrics writes what a source that follows a live node knows of the way up there, in the
// Prometheus text format. The kinds of errors are fixed: nothing that a node sends is a label.
func sourceMetrics(now func() upstream.Snapshot) func(io.Writer) {
	return func(w io.Writer) {
		s := now()
		promtext.Value(w, "ledgerd_source_connected", "gauge", "1 while there is a connection to the node that is followed.", one(s.Connected))
		promtext.Value(w, "ledgerd_source_reconnects_total", "counter", "Connections to the node after the first one.", s.Reconnects)
		promtext.Value(w, "ledgerd_source_replays_total", "counter", "Connections that asked the node to begin with an earlier slot.", s.Replays)
		promtext.Value(w, "ledgerd_source_messages_total", "counter", "Messages and answers received from the node.", s.Messages)
		promtext.Value(w, "ledgerd_source_received_bytes_total", "counter", "Bytes of the messages and answers received from the node.", s.Bytes)
		promtext.Value(w, "ledgerd_source_blocks_total", "counter", "Whole blocks that the source made of what it received.", s.Blocks)
		promtext.Value(w, "ledgerd_source_duplicates_total", "counter", "Things received twice and dropped, as after a replay.", s.Duplicates)
		promtext.Value(w, "ledgerd_source_dead_slots_total", "counter", "Slots the node gave up.", s.Dead)

		promtext.Value(w, "ledgerd_source_upstream_slot", "gauge", "Newest slot seen at the node.", uint64(s.UpstreamSlot))
		promtext.Value(w, "ledgerd_source_slot", "gauge", "Newest slot of which the source made a whole block.", uint64(s.SealedSlot))
		promtext.Value(w, "ledgerd_source_lag_slots", "gauge", "Slots the node is ahead of the newest whole block.", uint64(s.LagSlots))
		seconds(w, "ledgerd_source_lag_seconds", "For how long the node has been ahead of the newest whole block, 0 while it is not.", s.Lag)

		promtext.Value(w, "ledgerd_source_gaps_total", "counter", "Times that blocks were found to be missing.", s.Gaps)
		promtext.Value(w, "ledgerd_source_gap_slots_total", "counter", "Slots of those gaps, skipped ones included.", s.GapSlots)
		promtext.Value(w, "ledgerd_source_gaps_repaired_total", "counter", "Gaps that were filled.", s.GapsRepaired)
		promtext.Value(w, "ledgerd_source_gap_open", "gauge", "1 while blocks are missing: nothing after them is shown.", one(s.Gap.Open()))
		promtext.Value(w, "ledgerd_source_gap_stuck", "gauge", "1 while blocks are missing that cannot be had from anywhere.", one(s.Gap.Open() && s.Gap.Stuck))

		writeErrors(w, "ledgerd_source_errors_total", "Errors on the way to the node and in what it sent, by kind.", &s)
	}
}

// callsMetrics writes what is known of the way to a node that is asked beside a stream, to fill gaps and for accounts.
// They are figures of their own: a fill that fails is an error of the source too.
func callsMetrics(now func() upstream.Snapshot) func(io.Writer) {
	return func(w io.Writer) {
		s := now()
		promtext.Value(w, "ledgerd_source_calls_connected", "gauge", "1 while the node that is asked beside the stream answers.", one(s.Connected))
		promtext.Value(w, "ledgerd_source_calls_answers_total", "counter", "Answers of the node that is asked beside the stream.", s.Messages)
		promtext.Value(w, "ledgerd_source_calls_received_bytes_total", "counter", "Bytes of those answers.", s.Bytes)
		writeErrors(w, "ledgerd_source_calls_errors_total", "Calls to that node that failed, and what was wrong in its answers, by kind.", &s)
	}
}

func writeErrors(w io.Writer, name, help string, s *upstream.Snapshot) {
	promtext.Head(w, name, "counter", help)
	for k, n := range s.Errors {
		fmt.Fprintf(w, "%s{kind=%q} %d\n", name, upstream.Kind(k), n)
	}
}

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
	promtext.Head(w, name, "histogram", "Blocks undone by each rollback.")
	for i, n := range s.RollbacksUpTo {
		fmt.Fprintf(w, "%s_bucket{le=\"%d\"} %d\n", name, sequencer.RollbackDepths[i], n)
	}
	fmt.Fprintf(w, "%s_bucket{le=\"+Inf\"} %d\n%s_sum %d\n%s_count %d\n", name, s.Rollbacks, name, s.Undone, name, s.Rollbacks)
}

func one(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}
