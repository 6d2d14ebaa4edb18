package main

import (
	"fmt"
	"io"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"ledgerd/cmd/internal/build"
	"ledgerd/engine"
	"ledgerd/engine/figures"
	"ledgerd/engine/ledger"
	"ledgerd/httpd/promtext"
)

// engineMetrics writes what the engine knows of itself in the Prometheus text format.
// No label comes from a user: levels are three, shards are counted.
func engineMetrics(e *engine.Engine, status func() ledger.NodeStatus) func(io.Writer) {
	return func(w io.Writer) {
		writeHead(w, e.Head())
		stats := e.Stats()
		promtext.Value(w, "ledgerd_blocks_total", "counter", "Blocks the source showed, duplicates included.", stats.Blocks)
		promtext.Value(w, "ledgerd_account_updates_total", "counter", "Account updates applied, restores after rollbacks included.", stats.Updates)
		promtext.Value(w, "ledgerd_rollbacks_total", "counter", "Times the chain was cut back to an ancestor.", stats.Rollbacks)
		writeRollbacks(w, stats.Counters)
		promtext.Value(w, "ledgerd_duplicate_blocks_total", "counter", "Blocks that were held already.", stats.Duplicates)
		promtext.Value(w, "ledgerd_orphan_blocks_total", "counter", "Blocks ignored because finality passed them or their branch was given up.", stats.Orphans)
		promtext.Value(w, "ledgerd_dead_slots_total", "counter", "Blocks the source abandoned.", stats.Dead)
		promtext.Value(w, "ledgerd_gaps_total", "counter", "Missing parents that were passed over (gaps=allow).", stats.Gaps)
		promtext.Value(w, "ledgerd_unknown_statuses_total", "counter", "Statuses of slots that are not held.", stats.UnknownStatuses)
		promtext.Value(w, "ledgerd_transactions_total", "counter", "Transactions of the blocks that were appended to the chain.", stats.Executed)
		promtext.Value(w, "ledgerd_transactions", "gauge", "Transactions held.", uint64(stats.Transactions))
		writeShards(w, stats.Shards)
		writeFill(w, stats.Fill)
		now := status()
		promtext.Value(w, "ledgerd_healthy", "gauge", "1 while the node is healthy.", uint64(figures.One(now.Unhealthy == "")))
		promtext.Value(w, "ledgerd_fenced", "gauge", "1 when the node came to another state than the log says and answers nothing any more.",
			uint64(figures.One(e.FenceReason() != "")))
		promtext.Value(w, "ledgerd_upstream_peers", "gauge", "Connected upstream sources.", uint64(now.Peers))
	}
}

func writeHead(w io.Writer, h *ledger.Head) {
	if h == nil || !h.HasSlot() {
		return
	}
	figures.Head(w, "ledgerd_slot", "gauge", "Newest visible slot by commitment.")
	for c := ledger.Processed; c < ledger.Commitments; c++ {
		fmt.Fprintf(w, "ledgerd_slot{commitment=%q} %d\n", c, h.Tip(c).Slot)
	}
	tip := h.Tip(ledger.Processed)
	figures.Head(w, "ledgerd_lag_seconds", "gauge", "Time since the newest block was published here first; a status alone makes it no younger.")
	fmt.Fprintf(w, "ledgerd_lag_seconds %.3f\n", time.Since(h.Since[ledger.Processed]).Seconds())
	if tip.Time.Known {
		figures.Head(w, "ledgerd_block_age_seconds", "gauge", "Wall time minus the newest block's own time.")
		fmt.Fprintf(w, "ledgerd_block_age_seconds %d\n", time.Now().Unix()-tip.Time.Value)
	}
	promtext.Value(w, "ledgerd_seq", "gauge", "Number of the newest visible account update.", uint64(tip.Seq))
	promtext.Value(w, "ledgerd_retention_floor_slot", "gauge", "Blocks below this slot are pruned from memory.", uint64(h.Floor))
}

func writeShards(w io.Writer, shards []engine.ShardStats) {
	gauges := []struct {
		name, help string
		value      func(engine.ShardStats) int64
	}{
		{"ledgerd_shard_mailbox_depth", "Queries waiting for a shard.", func(s engine.ShardStats) int64 { return int64(s.MailboxDepth) }},
		{"ledgerd_shard_overlay_values", "Account values a shard holds of versions not yet folded.", func(s engine.ShardStats) int64 { return s.OverlayCells }},
		{"ledgerd_accounts", "Live accounts held, by shard.", func(s engine.ShardStats) int64 { return s.Accounts }},
		{"ledgerd_token_accounts", "Live token accounts held, by shard.", func(s engine.ShardStats) int64 { return s.TokenAccounts }},
	}
	for _, g := range gauges {
		figures.Head(w, g.name, "gauge", g.help)
		for i, s := range shards {
			fmt.Fprintf(w, "%s{shard=\"%d\"} %d\n", g.name, i, g.value(s))
		}
	}
}

// writeMetrics returns the writer of what a scrape of either listener shows.
func writeMetrics(set *metrics.Set) func(io.Writer) {
	metrics.ExposeMetadata(true)
	revision := build.Revision()
	return func(w io.Writer) {
		figures.Head(w, "ledgerd_build_info", "gauge", "Always 1; version and revision of the sources are the labels.")
		fmt.Fprintf(w, "ledgerd_build_info{version=%q,revision=%q} 1\n", build.Version, revision)
		set.WritePrometheus(w)
		withHelp(w, metrics.WriteProcessMetrics)
	}
}

// writeFiles writes the metrics of file descriptors. To count 10,000 of them takes 36 ms: that is not for the public listener.
func writeFiles(w io.Writer) { withHelp(w, metrics.WriteFDMetrics) }
