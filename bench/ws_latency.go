package bench

import (
	"context"
	"errors"
	"fmt"

	"ledgerd/bench/listen"
)

// runLatency has a busy network's blocks sent to subscribers of everything, at the pace of the network.
func runLatency(ctx context.Context, r *Run) error {
	r.Note("the subscribers run on the same processors as the server")
	r.noteSample()
	return turns(r, []int{500, 100}, func(full int) error { return measureLatency(ctx, r, full) })
}

func measureLatency(ctx context.Context, r *Run, full int) error {
	g, err := startNetwork(ctx, r)
	if err != nil {
		return err
	}
	first, count := g.feed.Newest(), r.Scaled(full)
	pool, err := g.subscribe(ctx, r, listen.Config{Sockets: count})
	if err != nil {
		return err
	}
	publish := func(blocks int) error {
		return errors.Join(g.pace(ctx, networkInterval, blocks), settle(ctx, pool, count, g.everything(first)))
	}
	if err := publish(networkWarmup); err != nil {
		return err
	}
	pool.Times() // those of the warm-up
	used, err := metered(func() error { return publish(r.networkBlocks()) }, []int{g.Pid()}, loader)
	if err != nil {
		return err
	}
	late := pool.Times()
	r.Record(fmt.Sprintf("%d-subscribers", full), int(late.Count()), append(times("", late), used.cores("server", "load")...)...)
	return nil
}
