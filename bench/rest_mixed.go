package bench

import (
	"context"
	"time"

	"ledgerd/bench/proc"
)

const (
	// mixedSnapshots is how often a snapshot is taken: again and again.
	mixedSnapshots = "1s"
	snapshotsTaken = "ledgerd_snapshots_total"
	// snapshotRunning is 1 while one is taken.
	snapshotRunning = "ledgerd_snapshot_running"
)

// runMixed asks a server, in turns, while nothing is written to it, and while a busy network's blocks are, of which it takes snapshots.
func runMixed(ctx context.Context, r *Run) {
	r.Note("blocks of %d updates come every %v, and snapshots are taken one after the other",
		networkUpdates, networkInterval)
	g, subject := startREST(ctx, r, r.Scaled(networkUpdates), "--snapshot-interval", mixedSnapshots)
	subject.rate = float64(r.Scaled(restPace))
	alone, beside := *subject, *subject
	alone.name, beside.name = "alone", "beside-ingest"
	inTurns(r,
		func() {
			g.awaitNoSnapshot(ctx)
			alone.round(ctx, r)
		},
		func() { g.whileWriting(ctx, networkInterval, func() { beside.round(ctx, r) }) },
	)
}

// awaitNoSnapshot returns once the server has taken none for two seconds, and so has none to take of what was written.
func (g *rig) awaitNoSnapshot(ctx context.Context) {
	since, taken := time.Now(), 0.0
	awaitMetrics(ctx, g.Server, 100*time.Millisecond, func(metrics map[string]float64) bool {
		if now := proc.Sum(metrics, snapshotsTaken); now != taken || proc.Sum(metrics, snapshotRunning) > 0 {
			taken, since = now, time.Now()
		}
		return time.Since(since) > 2*time.Second
	})
}
