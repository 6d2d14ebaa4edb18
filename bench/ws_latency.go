package bench

import (
	"context"
	"errors"
	"fmt"

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
	g, err := startNetwork(ctx, r)
	if err != nil {
		return err
	}
	defer g.Kill()
	first, count := g.feed.Newest(), r.Scaled(full)
	pool, err := g.subscribe(ctx, listen.Config{Sockets: count})
	if err != nil {
		return err
	}
	defer pool.Close()
	publish := func(blocks int) error {
		return errors.Join(g.pace(ctx, networkInterval, blocks), settle(ctx, pool, count, g.everything(first)))
	}
	if err := publish(networkWarmup); err != nil {
		return err
	}
	pool.Times() // those of the warm-up
	used, err := metered(g.Pid(), func() error { return publish(r.networkBlocks()) })
	if err != nil {
		return err
	}
	late := pool.Times()
	pool.Close()
	err = r.Record(fmt.Sprintf("%d-subscribers", full), int(late.Count()), append(times("", late), used.cores()...)...)
	return errors.Join(err, g.Stop())
}
