package bench

import (
	"context"
	"net/url"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/listen"
	"ledgerd/bench/report"
)

const (
	filteredSubscribers = 10_000
	filteredKeys        = 10
	filteredAccounts    = 1_000_000
	filteredUpdates     = 30_000 // of a block
)

// ingestDuration is what the server says of the blocks since it took them from its source.
const ingestDuration = "ledgerd_ingest_duration_seconds"

// runFiltered has ten times a busy network's updates ingested, with nobody listening and with subscribers that name accounts,
// in turns.
func runFiltered(ctx context.Context, r *Run) error {
	r.Note("ingest is from when the server took a block until it was durable and visible; flat out (updates/s) a block follows the other " +
		"as fast as the server reads them, and the subscribers take their share of the processors")
	accounts := max(r.Scaled(filteredAccounts), filteredKeys)
	g, err := startRig(ctx, r, feed.Config{Accounts: accounts, Updates: min(r.Scaled(filteredUpdates), accounts)})
	if err == nil {
		err = g.pace(ctx, networkInterval, networkWarmup)
	}
	if err != nil {
		return err
	}
	wanted := make([][]int, r.Scaled(filteredSubscribers))
	for i := range wanted {
		for k := range filteredKeys { // primes: different accounts from anywhere
			wanted[i] = append(wanted[i], (i*7919+k*104729)%accounts)
		}
	}
	return turns(r, []string{"nobody", "subscribers"}, func(subject string) error {
		if subject == "nobody" {
			return measureFiltered(ctx, r, g, subject, nil)
		}
		return measureFiltered(ctx, r, g, subject, wanted)
	})
}

// measureFiltered records how ingest does at a pace and flat out, with subscribers of some accounts each. What they receive is
// counted exactly.
func measureFiltered(ctx context.Context, r *Run, g *rig, subject string, wanted [][]int) error {
	first := g.feed.Newest()
	without, err := r.settled(ctx, g.Pid())
	if err != nil {
		return err
	}
	pool, err := g.subscribe(ctx, r, listen.Config{Sockets: len(wanted), Query: func(i int) url.Values { return named(wanted[i]) }})
	if err != nil {
		return err
	}
	var connected []report.Figure
	if len(wanted) > 0 {
		with, err := r.settled(ctx, g.Pid())
		if err != nil {
			return err
		}
		connected = []report.Figure{{Unit: "rss-KiB/conn", Value: float64(with-without) / (1 << 10) / float64(len(wanted))}}
	}
	ingested, err := g.Metrics()
	if err == nil {
		err = g.pace(ctx, networkInterval, r.networkBlocks())
	}
	if err != nil {
		return err
	}
	after, err := g.Metrics()
	if err != nil {
		return err
	}
	more := func(name string) float64 { return after[ingestDuration+name] - ingested[ingestDuration+name] }
	mean := more("_sum") / more("_count")
	began, updates := time.Now(), 0
	for ; updates == 0 || time.Since(began) < r.Duration; updates += g.feed.Config().Updates {
		if _, err := g.feed.Block(); err != nil {
			return err
		}
	}
	if err := g.await(ctx, g.feed.Newest()); err != nil {
		return err
	}
	took := time.Since(began)
	err = settle(ctx, pool, len(wanted), func(i int) (frames int64) {
		for _, index := range wanted[i] {
			frames += int64(g.feed.Config().Of(index, first+1, g.feed.Newest()))
		}
		return frames
	})
	if err != nil {
		return err
	}
	r.Record(subject, updates, append(connected, report.Figure{Unit: "updates/s", Value: float64(updates) / took.Seconds()},
		report.Figure{Unit: "ingest-mean-ms", Value: 1e3 * mean})...)
	return nil
}
