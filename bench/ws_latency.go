package bench

import (
	"context"
	"errors"
	"fmt"

	"ledgerd/bench/feed"
	"ledgerd/bench/listen"
)

// latencySizes are how many subscribers there are.
var latencySizes = []int{500, 100}

// runLatency has a busy network's blocks sent to subscribers of everything, at the pace of the network.
func runLatency(ctx context.Context, r *Run) error {
	err := turns(r, latencySizes, func(full int) error { return measureLatency(ctx, r, full) })
	return errors.Join(err, r.Note("the subscribers run on the same processors as the server"), r.noteSample())
}

func measureLatency(ctx context.Context, r *Run, full int) error {
	updates, count := r.Scaled(networkUpdates), r.Scaled(full)
	g, err := startRig(ctx, r, feed.Config{Accounts: max(r.Scaled(networkAccounts), updates), Updates: updates})
	if err != nil {
		return err
	}
	defer g.Kill()
	first := g.feed.Newest()
	pool, err := g.subscribe(ctx, listen.Config{Sockets: count})
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := g.pace(ctx, networkInterval, networkWarmup); err != nil {
		return err
	}
	if err := settle(ctx, pool, count, g.everything(first)); err != nil {
		return err
	}
	pool.Times() // those of the warm-up
	used, err := metered(g.Pid(), func() error {
		return g.pace(ctx, networkInterval, max(1, int(r.Duration/networkInterval)))
	})
	if err != nil {
		return err
	}
	if err := settle(ctx, pool, count, g.everything(first)); err != nil {
		return err
	}
	late := pool.Times()
	pool.Close()
	figures := append(times("", late), used.cores()...)
	if err := r.Record(fmt.Sprintf("%d-subscribers", full), int(late.Count()), figures...); err != nil {
		return err
	}
	return g.Stop()
}
