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
	"ledgerd/engine/ledger/wait"
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
func startRig(ctx context.Context, r *Run, c feed.Config, flags ...string) *rig {
	server := r.start(ctx, "", flags...)
	g := &rig{server, got(feed.New(server.Feed(), c))}
	check(g.Ready(ctx))
	return g
}

// network returns the ledger of a busy network with so many accounts at full scale.
func (r *Run) network(accounts int) feed.Config {
	updates := r.Scaled(networkUpdates)
	return feed.Config{Accounts: max(r.Scaled(accounts), updates), Updates: updates}
}

// startNetwork starts a server that follows a busy network.
func startNetwork(ctx context.Context, r *Run, flags ...string) *rig {
	return startRig(ctx, r, r.network(networkAccounts), flags...)
}

// networkBlocks is how many blocks a busy network has in a measurement.
func (r *Run) networkBlocks() int { return max(1, int(r.Duration/networkInterval)) }

// await waits until a slot is published.
func (g *rig) await(ctx context.Context, slot ledger.Slot) {
	awaitSlot(ctx, g.Server, 5*time.Millisecond, slot)
}

// pace has so many blocks published, one an interval, and waits for the last.
func (g *rig) pace(ctx context.Context, interval time.Duration, blocks int) {
	check(g.feed.Pace(ctx, interval, blocks))
	g.await(ctx, g.feed.Newest())
}

// whileWriting does something while blocks are published, one an interval.
func (g *rig) whileWriting(ctx context.Context, interval time.Duration, do func()) {
	while(ctx, func(ctx context.Context) { check(g.feed.Pace(ctx, interval, math.MaxInt)) }, do)
}

// while does something, and beside it something else that ends with its context.
func while(ctx context.Context, beside func(ctx context.Context), do func()) {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- try(func() { beside(ctx) }) }()
	err := try(do)
	stop()
	check(errors.Join(err, <-ended))
}

// sighting is what a server said of itself, and when it was asked and had answered.
type sighting struct {
	asked, told time.Time
	metrics     map[string]float64
}

// awaitMetrics asks a server for its metrics, time and again, until they are as wanted.
func awaitMetrics(ctx context.Context, server *proc.Server, every time.Duration, wanted func(metrics map[string]float64) bool) (s sighting) {
	check(server.Until(ctx, patience, every, func(context.Context) (err error) {
		s.asked = time.Now()
		s.metrics, err = server.Metrics()
		s.told = time.Now()
		if err == nil && !wanted(s.metrics) {
			err = errors.New("ledgerd has not come so far")
		}
		return err
	}))
	return s
}

// awaitSlot asks a server for its metrics until it shows a slot.
func awaitSlot(ctx context.Context, server *proc.Server, every time.Duration, slot ledger.Slot) sighting {
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
func metered(do func(), groups ...[]int) used {
	u := used{cpu: make([]time.Duration, len(groups))}
	count := func(sign time.Duration) {
		for i, pids := range groups {
			for _, pid := range pids {
				u.cpu[i] += sign * got(proc.CPU(pid))
			}
		}
	}
	count(-1)
	began := time.Now()
	do()
	u.took = time.Since(began)
	count(+1)
	return u
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
func (r *Run) settled(ctx context.Context, pid int) (bytes int64) {
	check(wait.Sleep(ctx, settleRounds*r.Duration))
	return got(proc.UsageOf(pid)).RSSBytes
}
