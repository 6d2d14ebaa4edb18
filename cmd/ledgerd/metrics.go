package main

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"ledgerd/cmd/internal/build"
	"ledgerd/engine"
	"ledgerd/engine/datadir"
	"ledgerd/engine/figures"
	"ledgerd/engine/fill"
	"ledgerd/engine/ledger"
	"ledgerd/engine/sequencer"
	"ledgerd/httpd/console"
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
		promtext.Value(w, "ledgerd_transactions_total", "counter", "Transactions of the blocks that were appended to the chain.", stats.Executed)
		promtext.Value(w, "ledgerd_transactions", "gauge", "Transactions held.", uint64(stats.Transactions))
		promtext.Value(w, "ledgerd_accounts_memory_bytes", "gauge", "Memory of accounts and mints, about: all versions, data and lists.", uint64(stats.AccountBytes))
		promtext.Value(w, "ledgerd_transactions_memory_bytes", "gauge", "Memory of blocks and transactions, about.", uint64(stats.TransactionBytes))
		promtext.Value(w, "ledgerd_history_memory_bytes", "gauge", "Memory of the indexes of history on disk.", uint64(stats.HistoryMemoryBytes))
		writeShards(w, stats.Shards)
		writeFill(w, stats.Fill)
		now := status()
		figures.Head(w, "ledgerd_node_info", "gauge", "Always 1; the label is the identifier of the node, by which the nodes of a cluster know it.")
		fmt.Fprintf(w, "ledgerd_node_info{node=%q} 1\n", now.NodeID)
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

// durabilityMetrics writes what the engine keeps on disk, in the Prometheus text format. A snapshot is due each interval.
func durabilityMetrics(e *engine.Engine, dir *datadir.Dir, interval time.Duration, fsyncs, ingests *promtext.Histogram) func(io.Writer) {
	started := time.Now()
	return func(w io.Writer) {
		stats := e.Stats()
		log, shot := stats.Log, stats.Snapshot
		promtext.Value(w, "ledgerd_log_durable_slot", "gauge", "Newest slot that is synced to the log, and outlives a crash of the machine.", uint64(log.DurableSlot))
		promtext.Value(w, "ledgerd_log_segments", "gauge", "Segments of the log on disk.", uint64(log.Segments))
		promtext.Value(w, "ledgerd_log_bytes", "gauge", "Bytes of the log on disk, without room that is kept for more.", uint64(log.Bytes))
		promtext.Value(w, "ledgerd_log_torn_bytes", "gauge", "Bytes that a crash had left after the newest whole commit, cut off the log at the start and kept beside it.", uint64(log.Torn))
		promtext.Value(w, "ledgerd_log_written_bytes_total", "counter", "Bytes the log has had since its beginning, pruned ones included.", uint64(log.Position))
		figures.Head(w, "ledgerd_log_fsync_duration_seconds", "histogram", "How long syncing the log took.")
		fsyncs.Write(w, "ledgerd_log_fsync_duration_seconds", "")
		figures.Head(w, "ledgerd_ingest_duration_seconds", "histogram", "Time from when a block was taken from the source until it was durable and visible; of blocks that became so at once, the first.")
		ingests.Write(w, "ledgerd_ingest_duration_seconds", "")
		promtext.Value(w, "ledgerd_disk_pauses_total", "counter", "Times ingest had to wait for space on the disk.", stats.DiskPauses)
		if free, err := dir.FS().FreeBytes(dir.Path()); err == nil {
			promtext.Value(w, "ledgerd_disk_free_bytes", "gauge", "Bytes that are free on the disk of the data directory.", free)
		}
		promtext.Value(w, "ledgerd_disk_min_free_bytes", "gauge", "Ingest pauses while less is free; no snapshot is taken while less is free than twice that and the size of the newest one.", stats.MinFreeBytes)
		seconds(w, "ledgerd_recovery_duration_seconds", "How long the start took to recover what is on disk.", stats.Recovery)

		promtext.Value(w, "ledgerd_snapshots_total", "counter", "Snapshots taken by this process.", shot.Count)
		promtext.Value(w, "ledgerd_snapshot_running", "gauge", "1 while a snapshot is being taken.", uint64(figures.One(shot.Running)))
		promtext.Value(w, "ledgerd_snapshot_failures_total", "counter", "Snapshots that were due and not taken: something failed, or the disk was too full.", shot.Failures)
		promtext.Value(w, "ledgerd_snapshots_damaged_total", "counter", "Snapshots found damaged at the start and passed over.", shot.Damaged)
		promtext.Value(w, "ledgerd_history_bytes", "gauge", "Size of the files of finalized blocks that stay once memory drops them.", uint64(stats.HistoryBytes))
		promtext.Value(w, "ledgerd_history_from_slot", "gauge", "From this slot on all blocks are held, in memory or on disk.", uint64(stats.HistoryFrom))
		promtext.Value(w, "ledgerd_history_damaged_files", "gauge", "History files that were found damaged and are still needed: their blocks are not indexed, unless memory has them.", uint64(stats.LostHistory))
		promtext.Value(w, "ledgerd_snapshot_slot", "gauge", "Slot of the newest snapshot.", uint64(shot.Slot))
		promtext.Value(w, "ledgerd_snapshot_bytes", "gauge", "Size of the newest snapshot, without the blocks it refers to.", uint64(shot.Bytes))
		seconds(w, "ledgerd_snapshot_duration_seconds", "How long the newest snapshot of this process took, 0 before the first.", shot.Duration)
		fixed := shot.Taken
		if fixed.IsZero() {
			fixed = started
		}
		seconds(w, "ledgerd_snapshot_age_seconds", "Time since the state of the newest snapshot was fixed, or since the process started while there is none.", time.Since(fixed))
		seconds(w, "ledgerd_snapshot_interval_seconds", "How often a snapshot is due; 0: at the end, and when the log grew long.", interval)
	}
}

// seconds writes a gauge of one duration.
func seconds(w io.Writer, name, help string, d time.Duration) {
	figures.Head(w, name, "gauge", help)
	fmt.Fprintf(w, "%s %.6f\n", name, d.Seconds())
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
	figures.Head(w, name, "histogram", "Blocks undone by each rollback.")
	for i, n := range s.RollbacksUpTo {
		fmt.Fprintf(w, "%s_bucket{le=\"%d\"} %d\n", name, sequencer.RollbackDepths[i], n)
	}
	fmt.Fprintf(w, "%s_bucket{le=\"+Inf\"} %d\n%s_sum %d\n%s_count %d\n", name, s.Rollbacks, name, s.Undone, name, s.Rollbacks)
}

// withHelp writes what the metrics library writes of the process or the Go runtime. The library, once asked
// to by ExposeMetadata, writes HELP lines without a text, calls counts of the kernel gauges, and calls
// two metrics counters whose names Prometheus keeps for others: what the manual says of each stands there instead.
func withHelp(w io.Writer, write func(io.Writer)) {
	var library bytes.Buffer
	write(&library)
	for line := range strings.Lines(library.String()) {
		if name, isHelp := strings.CutPrefix(line, "# HELP "); isHelp {
			name = strings.TrimSpace(name)
			row := manualMetrics()[name]
			figures.Head(w, name, row.kind, row.help)
		} else if !strings.HasPrefix(line, "# TYPE ") {
			_, _ = io.WriteString(w, line)
		}
	}
}

// manualRow is what the manual says of a metric.
type manualRow struct{ kind, help string }

var metricRows = regexp.MustCompile("(?m)^\\| `(\\w+)[^`]*` \\| (\\w+) \\| (.*) \\|$")

// manualMetrics returns what the manual says of metrics, by name.
var manualMetrics = sync.OnceValue(func() map[string]manualRow {
	rows := make(map[string]manualRow)
	for _, m := range metricRows.FindAllStringSubmatch(console.ManualText("metrics.md"), -1) {
		rows[m[1]] = manualRow{m[2], m[3]}
	}
	return rows
})
