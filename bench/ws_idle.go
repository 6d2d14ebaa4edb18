package bench

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"ledgerd/bench/feed"
	"ledgerd/bench/latency"
	"ledgerd/bench/listen"
	"ledgerd/bench/report"
)

const (
	idleSubscribers = 15_000
	idleKeys        = 10
	idleAccounts    = 20_000
	// idleSettle is how long the server is left alone before its memory is read, in durations of a measurement.
	idleSettle = 3
)

// runIdle has connections that name accounts which do not exist, so that they are sent nothing.
func runIdle(ctx context.Context, r *Run) error {
	err := turns(r, []int{r.Scaled(idleSubscribers)}, func(count int) error { return measureIdle(ctx, r, count) })
	return errors.Join(err, r.Note("CPU is that of the server while no block comes (quiet), and while blocks come that no "+
		"connection is told of (busy)"))
}

// measureIdle runs a server for one round, first alone and then with connections.
func measureIdle(ctx context.Context, r *Run, count int) error {
	config := feed.Config{Accounts: max(r.Scaled(idleAccounts), r.Scaled(networkUpdates)), Updates: r.Scaled(networkUpdates)}
	g, err := startRig(ctx, r, config)
	if err != nil {
		return err
	}
	defer g.Kill()
	alone, figures, err := g.idle(ctx, r)
	if err != nil {
		return err
	}
	if err := r.Record("alone", 1, figures...); err != nil {
		return err
	}
	pool, err := g.subscribe(ctx, listen.Config{Sockets: count, Query: func(i int) url.Values {
		keys := make([]int, idleKeys)
		for k := range keys {
			keys[k] = config.Accounts + i*idleKeys + k // no account of the ledger
		}
		return named(keys)
	}})
	if err != nil {
		return err
	}
	defer pool.Close()
	connected, figures, err := g.idle(ctx, r)
	if err != nil {
		return err
	}
	if answered, err := pool.Ping(ctx); err != nil || answered < count || int(connected.connections) != count {
		return fmt.Errorf("of %d connections the server counts %.0f, and answers %d: %w", count, connected.connections, answered, err)
	}
	if got := pool.Counts().Frames; got != int64(count) {
		return fmt.Errorf("connections that asked for nothing else than %d answers received %d frames", count, got)
	}
	perConn := report.Figure{Unit: "rss-KiB/conn", Value: (connected.rssMiB - alone.rssMiB) * (1 << 10) / float64(count)}
	if err := r.Record("connected", count, append(figures, perConn)...); err != nil {
		return err
	}
	pool.Close()
	return g.Stop()
}

// idle leaves the server alone until it has settled, and returns what it holds then and what CPU it takes.
func (g *rig) idle(ctx context.Context, r *Run) (s standing, figures []report.Figure, err error) {
	if err := rest(ctx, idleSettle*r.Duration); err != nil {
		return s, nil, err
	}
	if s, err = g.standing(); err != nil {
		return s, nil, err
	}
	figures = []report.Figure{{Unit: "rss-MiB", Value: s.rssMiB}}
	for _, name := range []string{"quiet", "busy"} {
		u, err := metered(g.Pid(), func() error {
			if name == "quiet" {
				return rest(ctx, r.Duration)
			}
			return g.pace(ctx, networkInterval, r.networkBlocks())
		})
		if err != nil {
			return s, nil, err
		}
		figures = append(figures, report.Figure{Unit: name + "-ms/s", Value: latency.Milliseconds(u.server) / u.took.Seconds()})
	}
	return s, figures, nil
}
