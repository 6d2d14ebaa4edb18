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
func runMixed(ctx context.Context, r *Run) error {
	r.Note("blocks of %d updates come every %v, and snapshots are taken one after the other",
		networkUpdates, networkInterval)
	g, subject, err := startREST(ctx, r, r.Scaled(networkUpdates), "--snapshot-interval", mixedSnapshots)
	if err != nil {
		return err
	}
	subject.rate = float64(r.Scaled(restPace))
	alone, beside := *subject, *subject
	alone.name, beside.name = "alone", "beside-ingest"
	return inTurns(r,
		func() error {
			if err := g.awaitNoSnapshot(ctx); err != nil {
				return err
			}
			return alone.round(ctx, r)
		},
		func() error {
			return g.whileWriting(ctx, networkInterval, func() error { return beside.round(ctx, r) })
		},
	)
}

// awaitNoSnapshot returns once the server has taken none for two seconds, and so has none to take of what was written.
func (g *rig) awaitNoSnapshot(ctx context.Context) error {
	since, taken := time.Now(), 0.0
	_, err := awaitMetrics(ctx, g.Server, 100*time.Millisecond, func(metrics map[string]float64) bool {
		if now := proc.Sum(metrics, snapshotsTaken); now != taken || proc.Sum(metrics, snapshotRunning) > 0 {
			taken, since = now, time.Now()
		}
		return time.Since(since) > 2*time.Second
	})
	return err
}
