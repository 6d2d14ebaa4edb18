package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ledgerd/bench/proc"
	"ledgerd/engine/ledger"
)

// Mixed returns the scenario in which it is asked and written at the same time. Options that
// name no rate have it asked at half of what can be answered.
func Mixed(o RESTOptions) []Scenario {
	return restScenarios(o, mixedAll)
}

var mixedAll = []restScenario{
	{"mixed", "How long answers take while blocks come in and snapshots are taken, at half of the greatest rate.", "", (*restRun).mixed},
}

const (
	// heavyUpdates is how many accounts a block updates when ten times as much is written as on
	// a busy network.
	heavyUpdates = 10 * networkUpdates
	// mixedSnapshots is how often a snapshot is taken: again and again.
	mixedSnapshots = time.Second
	// mixedShare is of the greatest rate.
	mixedShare = 0.5
	// snapshotsTaken is how many the server says it has taken.
	snapshotsTaken = "ledgerd_snapshots_total"
	// snapshotRunning is 1 while it takes one.
	snapshotRunning = "ledgerd_snapshot_running"
	// mixedLook is how often it is looked whether it does.
	mixedLook = mixedSnapshots / 2
)

// mixedLoad is a server to which so much is written.
type mixedLoad struct {
	*rig
	subject   *restSubject
	updates   int // of a block
	snapshots bool
	taken     float64 // snapshots until the last look
	rate      float64
}

// mixed asks two servers in turns, each while nothing is written to it and while much is. One
// takes snapshots meanwhile.
func (r *restRun) mixed(ctx context.Context) error {
	if r.env.Live != nil {
		return r.mixedLive(ctx)
	}
	var loads []*mixedLoad
	for _, l := range []mixedLoad{{updates: networkUpdates}, {updates: heavyUpdates}} {
		interval := mixedSnapshots
		if l.updates == heavyUpdates {
			interval = 0
		}
		if err := r.startMixed(ctx, &l, interval); err != nil {
			return err
		}
		defer l.Kill()
		loads = append(loads, &l)
	}
	for round := range r.env.Rounds {
		for i := range loads {
			l := loads[(i+round)%len(loads)]
			if err := r.mixedRound(ctx, l); err != nil {
				return fmt.Errorf("%s: %w", l.subject.name, err)
			}
			row := r.result.Row(l.subject.name)
			r.env.Say("mixed round %d: %s: p99 %.2f ms, %.2f of idle, p99.9 %.2f ms, at %.0f requests/s", round+1, l.subject.name,
				row.last("p99"), row.last("p99, of idle"), row.last("p99.9"), l.rate)
		}
	}
	busy, heavy := loads[0].subject.name, loads[1].subject.name
	r.goal(busy, Goal{What: "p99, of idle", Limit: 1.5})
	r.goal(busy, Goal{What: "p99.9", Limit: 10})
	r.goal(heavy, Goal{What: "p99, of idle", Limit: 2})
	return errors.Join(loads[0].Stop(), loads[1].Stop())
}

// startMixed starts a server, and finds out how much it answers.
func (r *restRun) startMixed(ctx context.Context, l *mixedLoad, snapshots time.Duration) error {
	l.updates = r.env.Scaled(l.updates)
	rig, err := r.startLedgerd(ctx, max(r.env.Scaled(restAccounts), l.updates), l.updates, "--snapshot-interval", snapshots.String())
	if err != nil {
		return err
	}
	l.rig, l.snapshots = rig, snapshots > 0
	name := fmt.Sprintf("%s updates/s", numbers(float64(l.updates) / networkInterval.Seconds())[0])
	if l.snapshots {
		name += " and snapshots"
	}
	if l.subject, _, err = r.ledgerdSubject(name, rig); err != nil {
		return errors.Join(err, rig.Stop())
	}
	if l.rate = r.o.Rate; l.rate > 0 {
		return nil
	}
	most, err := r.measure(ctx, l.subject)
	if err != nil {
		rig.Kill()
		return err
	}
	l.rate = mixedShare * most.perSecond()
	return nil
}

// mixedRound asks at the rate, first while nothing is written, then while blocks come.
func (r *restRun) mixedRound(ctx context.Context, l *mixedLoad) error {
	rate := r.o.Rate
	defer func() { r.o.Rate = rate }()
	r.o.Rate = l.rate
	if err := l.awaitNoSnapshot(ctx); err != nil {
		return err
	}
	idle, err := r.measure(ctx, l.subject)
	if err != nil {
		return err
	}
	idle.note(r.result.Row("idle, beside "+l.subject.name), l.rate)
	var busy *restMeasured
	var first, newest ledger.Slot
	var took time.Duration
	var taken float64
	err = l.whileWriting(ctx, networkInterval, func() (err error) {
		if l.snapshots {
			if err := l.awaitSnapshot(ctx); err != nil {
				return err
			}
		}
		snapshots := l.watchSnapshots(ctx)
		l.publications() // those of before
		first = l.feed.Newest()
		began := time.Now()
		busy, err = r.measure(ctx, l.subject)
		took, newest, taken = time.Since(began), l.feed.Newest(), snapshots()
		return err
	})
	if err != nil {
		return err
	}
	if err := l.await(ctx, l.feed.Newest()); err != nil {
		return err
	}
	row := r.result.Row(l.subject.name)
	busy.note(row, l.rate)
	row.Add("p99, of idle", "×", ratio(float64(busy.Latency.Quantile(0.99)), float64(idle.Latency.Quantile(0.99))))
	row.Add("p99.9, of idle", "×", ratio(float64(busy.Latency.Quantile(0.999)), float64(idle.Latency.Quantile(0.999))))
	row.Add("updates", "k/s", float64(newest-first)*float64(l.updates)/took.Seconds()/1e3)
	row.Add("published p99", "ms", milliseconds(l.publications().Quantile(0.99)))
	row.Add("time in which a snapshot is taken", "%", 100*taken)
	return nil
}

// takesSnapshot reports whether the server takes a snapshot now, or has taken one since the last look.
func (l *mixedLoad) takesSnapshot() (bool, error) {
	m, err := l.Metrics()
	before := l.taken
	l.taken = proc.Sum(m, snapshotsTaken)
	return err == nil && (l.taken > before || proc.Sum(m, snapshotRunning) > 0), err
}

// awaitSnapshot returns once the server takes a snapshot.
func (l *mixedLoad) awaitSnapshot(ctx context.Context) error {
	return l.look(ctx, func(taken bool) bool { return taken })
}

// awaitNoSnapshot returns once the server takes none, nor is to take one of what was written.
func (l *mixedLoad) awaitNoSnapshot(ctx context.Context) error {
	last := time.Now()
	return l.look(ctx, func(taken bool) bool {
		if taken {
			last = time.Now()
		}
		return !l.snapshots || time.Since(last) > 2*mixedSnapshots
	})
}

// look looks again and again whether the server takes a snapshot, until that is enough.
func (l *mixedLoad) look(ctx context.Context, enough func(taken bool) bool) error {
	for {
		taken, err := l.takesSnapshot()
		if err != nil || enough(taken) {
			return err
		}
		select {
		case <-time.After(mixedLook):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watchSnapshots looks until the function is called that it returns, which tells at what part of the
// looks there was a snapshot in the making.
func (l *mixedLoad) watchSnapshots(ctx context.Context) func() float64 {
	ctx, stop := context.WithCancel(ctx)
	looks, seen := 0, 0
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = l.look(ctx, func(taken bool) bool { // what ends it is no answer, and told elsewhere
			looks++
			if taken {
				seen++
			}
			return false
		})
	}()
	return func() float64 {
		stop()
		<-ended
		return ratio(float64(seen), float64(looks))
	}
}
