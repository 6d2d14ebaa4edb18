package bench

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

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
	count, err := r.room(r.Scaled(idleSubscribers))
	if err != nil {
		return err
	}
	for range r.Rounds {
		if err := measureIdle(ctx, r, count); err != nil {
			return err
		}
	}
	return r.Note("CPU is that of the server while no block comes (quiet) and while blocks come that no connection is told of (busy)")
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
	if err == nil {
		err = r.Record("alone", 1, figures...)
	}
	if err != nil {
		return err
	}
	began := time.Now()
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
	took := time.Since(began)
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
	figures = append(figures,
		report.Figure{Unit: "rss-KiB/conn", Value: (connected.rssMiB - alone.rssMiB) * (1 << 10) / float64(count)},
		report.Figure{Unit: "goroutines/conn", Value: connected.goroutines / float64(count)}, report.Figure{Unit: "connect-s", Value: took.Seconds()})
	if err := r.Record("connected", count, figures...); err != nil {
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
	quiet, err := metered(g.Pid(), func() error { return rest(ctx, r.Duration) })
	if err != nil {
		return s, nil, err
	}
	busy, err := metered(g.Pid(), func() error { return g.pace(ctx, networkInterval, max(1, int(r.Duration/networkInterval))) })
	return s, []report.Figure{
		{Unit: "rss-MiB", Value: s.rssMiB}, {Unit: "quiet-ms/s", Value: latency.Milliseconds(quiet.server) / quiet.took.Seconds()},
		{Unit: "busy-ms/s", Value: latency.Milliseconds(busy.server) / max(busy.took, 1).Seconds()},
	}, err
}

// named returns the query of a subscriber of some accounts.
func named(indexes []int) url.Values {
	keys := make([]string, len(indexes))
	for k, index := range indexes {
		keys[k] = feed.Key(index).String()
	}
	return url.Values{"pubkeys": {strings.Join(keys, ",")}}
}
