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
	// mixedBusiest is how many times a busy network's blocks are written at most.
	mixedBusiest = 10
)

// runMixed asks a server, in turns, while nothing is written to it, while a busy network's blocks are, and while ten times as many are. It takes
// snapshots of what is written.
func runMixed(ctx context.Context, r *Run) {
	r.Note("blocks of %d updates come every %v beside-ingest, every %v beside-tenfold, and snapshots are taken one after the other",
		networkUpdates, networkInterval, networkInterval/mixedBusiest)
	g, subject := startREST(ctx, r, r.Scaled(networkUpdates), "--snapshot-interval", mixedSnapshots)
	subject.rate = float64(r.Scaled(restPace))
	alone, beside, busiest := *subject, *subject, *subject
	alone.name, beside.name, busiest.name = "alone", "beside-ingest", "beside-tenfold"
	inTurns(r,
		func() {
			g.awaitNoSnapshot(ctx)
			alone.round(ctx, r)
		},
		func() { g.whileWriting(ctx, networkInterval, func() { beside.round(ctx, r) }) },
		func() { g.whileWriting(ctx, networkInterval/mixedBusiest, func() { busiest.round(ctx, r) }) },
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
