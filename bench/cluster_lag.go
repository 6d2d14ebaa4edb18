package bench

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/latency"
	"ledgerd/bench/listen"
	"ledgerd/bench/report"
	"ledgerd/engine/ledger"
)

// lags has a busy network's blocks pass the log at the network's pace.
func (c *cluster) lags(ctx context.Context) error {
	c.Note("from due to shown is all of it: the ingester, the log, the replica; of several replicas the slowest counts")
	return turns(c.Run, []int{1, 3}, func(replicas int) error {
		c.logs++
		return c.lag(ctx, replicas)
	})
}

// lag measures one round with so many replicas.
func (c *cluster) lag(ctx context.Context, replicas int) error {
	g, err := startNetwork(ctx, c.Run, c.node("ingest")...)
	if err == nil {
		err = g.pace(ctx, networkInterval, networkWarmup)
	}
	if err != nil {
		return err
	}
	var watchers []*listen.Pool
	for range replicas {
		replica, err := c.replica(ctx)
		if err == nil {
			err = replica.Ready(ctx)
		}
		if err != nil {
			return err
		}
		// Who subscribes to no account is told where each slot ends, and so when it is published.
		watcher, err := c.open(ctx, listen.Config{
			Sockets: 1, URL: replica.StreamURL(), CheckNumbers: true, Query: func(int) url.Values { return url.Values{"mode": {"none"}} },
		})
		if err != nil {
			return err
		}
		watchers = append(watchers, watcher)
	}
	first, blocks := g.feed.Newest()+1, c.networkBlocks()
	used, err := metered(func() error { return g.feed.Pace(ctx, networkInterval, blocks) }, []int{g.Pid()})
	if err != nil {
		return err
	}
	slowest := latency.New()
	for _, w := range watchers {
		seen, err := shown(ctx, w, g.feed, first)
		if err != nil {
			return err
		}
		if seen.Quantile(0.99) > slowest.Quantile(0.99) {
			slowest = seen
		}
	}
	c.Record(fmt.Sprintf("replicas=%d", replicas), blocks, append([]report.Figure{
		{Unit: "p50-ms", Value: latency.Milliseconds(slowest.Quantile(0.5))},
		{Unit: "p99-ms", Value: latency.Milliseconds(slowest.Quantile(0.99))},
	}, used.cores("ingester")...)...)
	return nil
}

// shown waits until a subscriber was told of every block from one on, and returns how long that took from when they were due.
func shown(ctx context.Context, watcher *listen.Pool, due *feed.Feed, slot ledger.Slot) (*latency.Histogram, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	seen := latency.New()
	for ; slot <= due.Newest(); slot++ {
		for watcher.Arrived(uint64(slot)).IsZero() {
			if n := watcher.Counts(); n.Connected == 0 {
				return nil, fmt.Errorf("a replica's stream ended before block %d: %w", slot, n.Why)
			}
			if err := rest(ctx, time.Millisecond); err != nil {
				return nil, fmt.Errorf("a replica does not show block %d: %w", slot, err)
			}
		}
		seen.Record(watcher.Arrived(uint64(slot)).Sub(due.Due(slot)))
	}
	return seen, nil
}
