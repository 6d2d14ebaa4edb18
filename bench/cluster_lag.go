package bench

import (
	"context"
	"errors"
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
	err := turns(c.Run, []int{1, 3}, func(replicas int) error {
		c.nextLog()
		return c.lag(ctx, replicas)
	})
	return errors.Join(err, c.Note("from due to shown is all of it: the ingester, the log, the replica; of several replicas the slowest counts"))
}

// lag measures one round with so many replicas.
func (c *cluster) lag(ctx context.Context, replicas int) error {
	updates := c.Scaled(networkUpdates)
	g, err := startRig(ctx, c.Run, feed.Config{Accounts: max(c.Scaled(networkAccounts), updates), Updates: updates}, c.node("ingest")...)
	if err != nil {
		return err
	}
	defer g.Kill()
	if err := g.pace(ctx, networkInterval, networkWarmup); err != nil {
		return err
	}
	var watchers []*listen.Pool
	for range replicas {
		replica, err := c.replica(ctx)
		if err != nil {
			return err
		}
		defer replica.Kill()
		if err := replica.Ready(ctx); err != nil {
			return err
		}
		// Who subscribes to no account is told where each slot ends, and so when it is published.
		watcher, err := listen.OpenAll(ctx, listen.Config{
			Sockets: 1, URL: replica.StreamURL(), CheckNumbers: true, Query: func(int) url.Values { return url.Values{"mode": {"none"}} },
		})
		if err != nil {
			return err
		}
		defer watcher.Close()
		watchers = append(watchers, watcher)
	}
	before, err := usageOf(g.Pid())
	if err != nil {
		return err
	}
	first, blocks := g.feed.Newest()+1, c.networkBlocks()
	if err := g.feed.Pace(ctx, networkInterval, blocks); err != nil {
		return err
	}
	after, err := usageOf(g.Pid())
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
	return errors.Join(c.Record(fmt.Sprintf("replicas=%d", replicas), blocks,
		report.Figure{Unit: "p50-ms", Value: slowest.Quantile(0.5).Seconds() * 1e3},
		report.Figure{Unit: "p99-ms", Value: slowest.Quantile(0.99).Seconds() * 1e3},
		report.Figure{Unit: "ingester-cores", Value: after.cores(before)}), g.Stop())
}

// shown waits until a subscriber was told of every block from one on, and returns how long that took from when they were due.
func shown(ctx context.Context, watcher *listen.Pool, due *feed.Feed, slot ledger.Slot) (*latency.Histogram, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for seen := latency.New(); ; {
		if slot > due.Newest() {
			return seen, nil
		}
		if first := watcher.Arrived(uint64(slot)); !first.IsZero() {
			seen.Record(first.Sub(due.Due(slot)))
			slot++
			continue
		}
		if n := watcher.Counts(); n.Connected == 0 {
			return nil, fmt.Errorf("a replica's stream ended before block %d: %w", slot, n.Why)
		}
		if err := rest(ctx, time.Millisecond); err != nil {
			return nil, fmt.Errorf("a replica does not show block %d: %w", slot, err)
		}
	}
}
