package bench

import (
	"context"
	"errors"
	"math"
	"os"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/proc"
	"ledgerd/bench/report"
	"ledgerd/engine/ledger"
)

// A busy network: 7,500 updates a second in a block every 400 ms.
const (
	networkInterval = 400 * time.Millisecond
	networkUpdates  = 3000
	networkAccounts = 200_000
	// networkWarmup is how many blocks nobody counts: buffers grow, caches fill.
	networkWarmup = 3
)

const (
	// patience is the longest that a server may take for anything: to read, write or recover a ledger.
	patience      = 15 * time.Minute
	processedSlot = `ledgerd_slot{commitment="processed"}`
	finalizedSlot = `ledgerd_slot{commitment="finalized"}`
	connections   = "ledgerd_ws_connections"
)

// rig is a ledgerd that follows a made-up ledger.
type rig struct {
	*proc.Server
	feed *feed.Feed
}

// startRig starts a server on the beginning of a ledger, which it has read when this returns.
func startRig(ctx context.Context, r *Run, c feed.Config, flags ...string) (g *rig, err error) {
	g = new(rig)
	if g.Server, err = r.start(ctx, "", flags...); err != nil {
		return nil, err
	}
	if g.feed, err = feed.New(g.Feed(), c); err == nil {
		err = g.Ready(ctx)
	}
	return g, err
}

// network returns the ledger of a busy network with so many accounts at full scale.
func (r *Run) network(accounts int) feed.Config {
	updates := r.Scaled(networkUpdates)
	return feed.Config{Accounts: max(r.Scaled(accounts), updates), Updates: updates}
}

// startNetwork starts a server that follows a busy network.
func startNetwork(ctx context.Context, r *Run, flags ...string) (*rig, error) {
	return startRig(ctx, r, r.network(networkAccounts), flags...)
}

// networkBlocks is how many blocks a busy network has in a measurement.
func (r *Run) networkBlocks() int { return max(1, int(r.Duration/networkInterval)) }

// await waits until a slot is published.
func (g *rig) await(ctx context.Context, slot ledger.Slot) error {
	_, err := awaitSlot(ctx, g.Server, 5*time.Millisecond, slot)
	return err
}

// pace has so many blocks published, one an interval, and waits for the last.
func (g *rig) pace(ctx context.Context, interval time.Duration, blocks int) error {
	err := g.feed.Pace(ctx, interval, blocks)
	return errors.Join(err, g.await(ctx, g.feed.Newest()))
}

// whileWriting does something while blocks are published, one an interval.
func (g *rig) whileWriting(ctx context.Context, interval time.Duration, do func() error) error {
	return while(ctx, func(ctx context.Context) error { return g.feed.Pace(ctx, interval, math.MaxInt) }, do)
}

// while does something, and beside it something else that ends with its context.
func while(ctx context.Context, beside func(ctx context.Context) error, do func() error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- beside(ctx) }()
	err := do()
	stop()
	return errors.Join(err, <-ended)
}

// sighting is what a server said of itself, and when it was asked and had answered.
type sighting struct {
	asked, told time.Time
	metrics     map[string]float64
}

// awaitMetrics asks a server for its metrics, time and again, until they are as wanted.
func awaitMetrics(ctx context.Context, server *proc.Server, every time.Duration, wanted func(metrics map[string]float64) bool) (s sighting, err error) {
	err = server.Until(ctx, patience, every, func(context.Context) (err error) {
		s.asked = time.Now()
		s.metrics, err = server.Metrics()
		s.told = time.Now()
		if err == nil && !wanted(s.metrics) {
			err = errors.New("ledgerd has not come so far")
		}
		return err
	})
	return s, err
}

// awaitSlot asks a server for its metrics until it shows a slot.
func awaitSlot(ctx context.Context, server *proc.Server, every time.Duration, slot ledger.Slot) (sighting, error) {
	return awaitMetrics(ctx, server, every, func(m map[string]float64) bool { return m[processedSlot] >= float64(slot) })
}

// loader is the processes of the load: this one.
var loader = []int{os.Getpid()}

// used is how long something took, and what CPU time groups of processes had meanwhile.
type used struct {
	took time.Duration
	cpu  []time.Duration // of each group
}

// metered does something, and returns what groups of processes used meanwhile.
func metered(do func() error, groups ...[]int) (u used, err error) {
	before, err := cpuOf(groups)
	if err != nil {
		return u, err
	}
	began := time.Now()
	if err := do(); err != nil {
		return u, err
	}
	u.took = time.Since(began)
	u.cpu, err = cpuOf(groups)
	for i := range u.cpu {
		u.cpu[i] -= before[i]
	}
	return u, err
}

// cpuOf returns the CPU time that groups of processes have had.
func cpuOf(groups [][]int) ([]time.Duration, error) {
	all := make([]time.Duration, len(groups))
	for i, pids := range groups {
		for _, pid := range pids {
			had, err := proc.CPU(pid)
			if err != nil {
				return nil, err
			}
			all[i] += had
		}
	}
	return all, nil
}

// cores returns how many processors each group used on average.
func (u *used) cores(names ...string) (figures []report.Figure) {
	for i, name := range names {
		figures = append(figures, report.Figure{Unit: name + "-cores", Value: u.cpu[i].Seconds() / u.took.Seconds()})
	}
	return figures
}

// settleRounds is how long a server is left alone before its memory is read, in durations of a measurement.
const settleRounds = 3

// settled returns what a process holds that was left alone for a while.
func (r *Run) settled(ctx context.Context, pid int) (bytes int64, err error) {
	if err := rest(ctx, settleRounds*r.Duration); err != nil {
		return 0, err
	}
	usage, err := proc.UsageOf(pid)
	return usage.RSSBytes, err
}

// rest waits.
func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
