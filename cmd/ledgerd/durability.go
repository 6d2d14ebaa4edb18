package main

import (
	"fmt"
	"io"
	"time"

	"ledgerd/engine"
	"ledgerd/engine/datadir"
	"ledgerd/engine/figures"
	"ledgerd/httpd/promtext"
)

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
