package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"ledgerd/bench/feed"
	"ledgerd/bench/proc"
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
)

// rig is a ledgerd that follows a made-up ledger.
type rig struct {
	*proc.Server
	feed *feed.Feed
}

// startRig starts a server that has a block synced before anybody sees it, and takes no snapshot in the middle of a
// measurement. The caller ends it with Stop, and with Kill on the way out after an error.
func startRig(ctx context.Context, r *Run, c feed.Config, args ...string) (g *rig, err error) {
	args = append([]string{"--wal-sync", "always", "--snapshot-interval", "0"}, args...)
	g = new(rig)
	if g.Server, err = proc.Start(ctx, r.Ledgerd, args, proc.Options{Dir: r.Dir}); err != nil {
		return nil, err
	}
	if g.feed, err = feed.New(g.Feed(), c); err == nil {
		err = g.Ready(ctx)
	}
	if err != nil {
		g.Kill()
		return nil, err
	}
	return g, nil
}

// await waits until a slot is published.
func (g *rig) await(ctx context.Context, slot ledger.Slot) error {
	_, err := awaitMetrics(ctx, g.Server, 5*time.Millisecond, func(m map[string]float64) bool { return m[processedSlot] >= float64(slot) })
	return err
}

// pace has so many blocks published, one an interval, and waits for the last.
func (g *rig) pace(ctx context.Context, interval time.Duration, blocks int) error {
	err := g.feed.Pace(ctx, interval, blocks)
	return errors.Join(err, g.await(ctx, g.feed.Newest()))
}

// whileWriting does something while blocks are published, one an interval.
func (g *rig) whileWriting(ctx context.Context, interval time.Duration, do func() error) error {
	writing, stop := context.WithCancel(ctx)
	defer stop()
	wrote := make(chan error, 1)
	go func() { wrote <- g.feed.Pace(writing, interval, math.MaxInt) }()
	err := do()
	stop()
	return errors.Join(err, <-wrote)
}

// sighting is what a server said of itself, and when it was asked and had answered.
type sighting struct {
	asked, told time.Time
	metrics     map[string]float64
}

// awaitMetrics asks a server for its metrics, time and again, until they are as wanted.
func awaitMetrics(ctx context.Context, server *proc.Server, every time.Duration, wanted func(metrics map[string]float64) bool) (s sighting, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		s.asked = time.Now()
		s.metrics, err = server.Metrics()
		if s.told = time.Now(); err == nil && wanted(s.metrics) {
			return s, nil
		}
		select {
		case <-server.Gone():
			return s, fmt.Errorf("ledgerd ended while it was waited for; it said: %s", server.Said())
		case <-ctx.Done():
			return s, fmt.Errorf("ledgerd does not come so far: %w", errors.Join(ctx.Err(), err))
		case <-time.After(every):
		}
	}
}

// usage is what some processes have used until a moment.
type usage struct {
	at  time.Time
	cpu time.Duration
}

// usageOf asks the kernel for the time that processes have had on processors, to the nanosecond (clock_getcpuclockid(3)).
func usageOf(pids ...int) (u usage, err error) {
	u.at = time.Now()
	for _, pid := range pids {
		const scheduled = 2 // the scheduler's clock, of a process
		var had unix.Timespec
		if err := unix.ClockGettime(int32(^pid<<3|scheduled), &had); err != nil {
			return u, fmt.Errorf("cannot read the CPU time of process %d: %w", pid, err)
		}
		u.cpu += time.Duration(had.Nano())
	}
	return u, nil
}

// cores returns how many processors were used on average since an earlier moment.
func (u usage) cores(earlier usage) float64 {
	return (u.cpu - earlier.cpu).Seconds() / max(u.at.Sub(earlier.at), time.Nanosecond).Seconds()
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
