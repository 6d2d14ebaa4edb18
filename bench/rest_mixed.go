package bench

import (
	"context"
	"fmt"
	"time"

	"ledgerd/bench/proc"
	"ledgerd/bench/report"
)

const (
	// heavyUpdates is how many accounts a block updates when ten times as much is written as on a busy network.
	heavyUpdates = 10 * networkUpdates
	// mixedSnapshots is how often a snapshot is taken: again and again.
	mixedSnapshots = time.Second
	// mixedShare is the rate of requests, of the greatest.
	mixedShare = 0.5
	// snapshotsTaken is how many the server says it has taken, and snapshotRunning is 1 while it takes one.
	snapshotsTaken  = "ledgerd_snapshots_total"
	snapshotRunning = "ledgerd_snapshot_running"
)

// mixedLoad is a server to which so much is written.
type mixedLoad struct {
	*rig
	subject  *restSubject
	name     string
	updates  int           // of a block
	interval time.Duration // of snapshots; 0: none are taken
}

// runMixed asks two servers in turns, each while nothing is written to it and while much is. One takes snapshots meanwhile.
func runMixed(ctx context.Context, r *Run) error {
	loads := []*mixedLoad{{name: "busy", updates: networkUpdates, interval: mixedSnapshots}, {name: "heavy", updates: heavyUpdates}}
	for _, m := range loads {
		if err := m.start(ctx, r); err != nil {
			return err
		}
	}
	r.Note("busy is %d updates in a block every %v while snapshots are taken one after the other, heavy is %d without snapshots; requests come at half of the rate that the idle server can answer; a snapshot counts that is not ready when a measurement ends",
		loads[0].updates, networkInterval, loads[1].updates)
	return turns(r, loads, func(m *mixedLoad) error { return m.round(ctx, r) })
}

// start starts the server, and finds out how much it answers.
func (m *mixedLoad) start(ctx context.Context, r *Run) (err error) {
	m.updates = r.Scaled(m.updates)
	m.rig, m.subject, err = startREST(ctx, r, max(r.Scaled(restAccounts), m.updates), m.updates, "--snapshot-interval", m.interval.String())
	if err != nil {
		return err
	}
	most, err := m.subject.measure(ctx, r)
	if err == nil {
		m.subject.load.Rate = mixedShare * most.PerSecond()
	}
	return err
}

// round asks at the rate, first while nothing is written, then while blocks come.
func (m *mixedLoad) round(ctx context.Context, r *Run) error {
	taken, err := m.awaitNoSnapshot(ctx)
	if err != nil {
		return err
	}
	m.subject.name = "idle-before-" + m.name
	if err := m.subject.round(ctx, r); err != nil {
		return err
	}
	m.subject.name = m.name
	err = m.whileWriting(ctx, networkInterval, func() error {
		_, err := awaitMetrics(ctx, m.Server, mixedSnapshots/10, func(metrics map[string]float64) bool { // of a snapshot, if there is to be one
			return m.interval == 0 || proc.Sum(metrics, snapshotRunning) > 0 || proc.Sum(metrics, snapshotsTaken) > taken
		})
		if err != nil {
			return err
		}
		first, begun := m.feed.Newest(), time.Now()
		busy, err := m.subject.measure(ctx, r)
		if err != nil {
			return err
		}
		took, newest := time.Since(begun).Seconds(), m.feed.Newest()
		after, err := m.Metrics()
		if err != nil {
			return err
		}
		busy.record(r, m.name,
			report.Figure{Unit: "updates/s", Value: float64(newest-first) * float64(m.updates) / took},
			report.Figure{Unit: "snapshots", Value: proc.Sum(after, snapshotsTaken) - taken + proc.Sum(after, snapshotRunning)})
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	return m.await(ctx, m.feed.Newest())
}

// awaitNoSnapshot returns how many the server has taken, once it takes no more for a while, and so has none to take of what was written.
func (m *mixedLoad) awaitNoSnapshot(ctx context.Context) (taken float64, err error) {
	since := time.Now()
	_, err = awaitMetrics(ctx, m.Server, mixedSnapshots/10, func(metrics map[string]float64) bool {
		if now := proc.Sum(metrics, snapshotsTaken); now != taken || proc.Sum(metrics, snapshotRunning) > 0 {
			taken, since = now, time.Now()
		}
		return time.Since(since) > 2*m.interval
	})
	return taken, err
}
