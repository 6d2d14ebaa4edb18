package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
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
	var watchers []*watcher
	for range replicas {
		replica, err := c.replica(ctx)
		if err != nil {
			return err
		}
		defer replica.Kill()
		if err := replica.Ready(ctx); err != nil {
			return err
		}
		w, err := watch(ctx, replica.StreamURL(), g.feed)
		if err != nil {
			return err
		}
		defer w.close()
		watchers = append(watchers, w)
	}
	before, err := usageOf(g.Pid())
	if err != nil {
		return err
	}
	blocks := max(1, int(c.Duration/networkInterval))
	if err := g.feed.Pace(ctx, networkInterval, blocks); err != nil {
		return err
	}
	after, err := usageOf(g.Pid())
	if err != nil {
		return err
	}
	slowest := latency.New()
	for _, w := range watchers {
		if err := w.await(ctx, g.feed.Newest()); err != nil {
			return err
		}
		if w.seen.Quantile(0.99) > slowest.Quantile(0.99) {
			slowest = w.seen
		}
	}
	return errors.Join(c.Record(fmt.Sprintf("replicas=%d", replicas), blocks,
		report.Figure{Unit: "p50-ms", Value: slowest.Quantile(0.5).Seconds() * 1e3},
		report.Figure{Unit: "p99-ms", Value: slowest.Quantile(0.99).Seconds() * 1e3},
		report.Figure{Unit: "ingester-cores", Value: after.cores(before)}), g.Stop())
}

// watcher is a subscriber of no account, which is told where each slot ends, and so when it is published.
type watcher struct {
	conn   *listen.Conn
	newest atomic.Uint64      // slot
	ended  chan struct{}      // closed when nothing comes any more
	seen   *latency.Histogram // from when blocks were due; the reader's until await has returned
}

// watch subscribes. What is due from now on is counted.
func watch(ctx context.Context, address string, due *feed.Feed) (*watcher, error) {
	conn, err := listen.Dial(ctx, address+"?mode=none&extended=true", listen.Options{})
	if err != nil {
		return nil, err
	}
	w := &watcher{conn: conn, ended: make(chan struct{}), seen: latency.New()}
	from := due.Newest()
	go func() {
		defer close(w.ended)
		for {
			f, err := conn.Next()
			if err != nil {
				return
			}
			var m struct {
				Type string
				Slot ledger.Slot
			}
			if json.Unmarshal(f.Payload, &m) != nil || m.Type != "slot_end" || m.Slot <= from {
				continue
			}
			w.seen.Record(time.Since(due.Due(m.Slot)))
			w.newest.Store(uint64(m.Slot))
		}
	}()
	return w, nil
}

// await waits until a slot is published, and ends the subscription.
func (w *watcher) await(ctx context.Context, slot ledger.Slot) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer w.close()
	for w.newest.Load() < uint64(slot) {
		select {
		case <-w.ended:
			return fmt.Errorf("a replica's stream ended before block %d", slot)
		default:
		}
		if err := rest(ctx, time.Millisecond); err != nil {
			return fmt.Errorf("a replica does not show block %d: %w", slot, err)
		}
	}
	return nil
}

func (w *watcher) close() {
	_ = w.conn.Close() // perhaps again
	<-w.ended
}
