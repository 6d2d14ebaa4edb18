package bench

import (
	"context"
	"fmt"
	"net/url"

	"ledgerd/bench/listen"
	"ledgerd/bench/report"
)

const (
	idleSubscribers = 15_000
	idleKeys        = 10
	idleAccounts    = 20_000
)

// runIdle has connections that name accounts which do not exist, so that they are sent nothing.
func runIdle(ctx context.Context, r *Run) error {
	r.Note("CPU is that of the server while blocks come that no connection is told of")
	return turns(r, []int{r.Scaled(idleSubscribers)}, func(count int) error { return measureIdle(ctx, r, count) })
}

// measureIdle runs a server for one round, first alone and then with connections.
func measureIdle(ctx context.Context, r *Run, count int) error {
	g, err := startRig(ctx, r, r.network(idleAccounts))
	if err != nil {
		return err
	}
	alone, figures, err := g.idle(ctx, r)
	if err != nil {
		return err
	}
	r.Record("alone", 1, figures...)
	pool, err := g.subscribe(ctx, r, listen.Config{Sockets: count, Query: func(i int) url.Values {
		keys := make([]int, idleKeys)
		for k := range keys {
			keys[k] = g.feed.Config().Accounts + i*idleKeys + k // no account of the ledger
		}
		return named(keys)
	}})
	if err != nil {
		return err
	}
	connected, figures, err := g.idle(ctx, r)
	if err != nil {
		return err
	}
	if answered, err := pool.Ping(ctx); err != nil || answered < count || int(connected.metrics[connections]) != count {
		return fmt.Errorf("of %d connections the server counts %.0f, and answers %d: %w", count, connected.metrics[connections], answered, err)
	}
	if got := pool.Counts().Frames; got != int64(count) {
		return fmt.Errorf("connections that asked for nothing else than %d answers received %d frames", count, got)
	}
	perConn := report.Figure{Unit: "rss-KiB/conn", Value: float64(connected.RSSBytes-alone.RSSBytes) / (1 << 10) / float64(count)}
	r.Record("connected", count, append(figures, perConn)...)
	return nil
}

// idle leaves the server alone until it has settled, and returns what it holds then and what CPU it takes.
func (g *rig) idle(ctx context.Context, r *Run) (s standing, figures []report.Figure, err error) {
	if s, err = r.atRest(ctx, g.Server); err != nil {
		return s, nil, err
	}
	used, err := metered(func() error { return g.pace(ctx, networkInterval, r.networkBlocks()) }, []int{g.Pid()})
	if err == nil {
		figures = append(used.cores("server"), report.Figure{Unit: "rss-MiB", Value: s.rssMiB()})
	}
	return s, figures, err
}
