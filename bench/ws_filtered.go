package bench

import (
	"context"
	"math/rand/v2"
	"net/url"
	"slices"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/listen"
	"ledgerd/bench/report"
	"ledgerd/engine/ledger"
)

const (
	filteredSubscribers = 10_000
	filteredKeys        = 10
	filteredAccounts    = 1_000_000
	filteredUpdates     = 30_000 // of a block
	filteredSeed        = 7
)

// ingestDuration is what the server says of the blocks since it took them from its source.
const ingestDuration = "ledgerd_ingest_duration_seconds"

// runFiltered has ten times a busy network's updates ingested, with nobody listening and with subscribers that name accounts,
// in turns.
func runFiltered(ctx context.Context, r *Run) error {
	count, err := r.room(r.Scaled(filteredSubscribers))
	if err != nil {
		return err
	}
	accounts := max(r.Scaled(filteredAccounts), filteredKeys)
	g, err := startRig(ctx, r, feed.Config{Accounts: accounts, Updates: min(r.Scaled(filteredUpdates), accounts)})
	if err != nil {
		return err
	}
	defer g.Kill()
	if err := g.pace(ctx, networkInterval, networkWarmup); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(filteredSeed, 0))
	wanted := make([][]int, count)
	for i := range wanted {
		for len(wanted[i]) < filteredKeys {
			if index := random.IntN(accounts); !slices.Contains(wanted[i], index) {
				wanted[i] = append(wanted[i], index)
			}
		}
	}
	err = turns(r, []string{"nobody", "subscribers"}, func(subject string) error {
		if subject == "nobody" {
			return measureFiltered(ctx, r, g, subject, nil)
		}
		return measureFiltered(ctx, r, g, subject, wanted)
	})
	if err != nil {
		return err
	}
	if err := r.Note("ingest is from when the server took a block until it was durable and visible; flat out (updates/s) a block follows the other as fast as the server reads them, and the subscribers take their share of the processors"); err != nil {
		return err
	}
	return g.Stop()
}

// measureFiltered records how ingest does at a pace and flat out, with subscribers of some accounts each. What they receive is
// counted exactly.
func measureFiltered(ctx context.Context, r *Run, g *rig, subject string, wanted [][]int) error {
	first := g.feed.Newest()
	pool, err := g.subscribe(ctx, listen.Config{Sockets: len(wanted), Query: func(i int) url.Values { return named(wanted[i]) }})
	if err != nil {
		return err
	}
	defer pool.Close()
	want := func(i int) (frames int64) {
		for _, index := range wanted[i] {
			frames += int64(g.feed.Config().Of(index, first+1, g.feed.Newest()))
		}
		return frames
	}
	before, err := g.Metrics()
	if err != nil {
		return err
	}
	blocks := max(1, int(r.Duration/networkInterval))
	paced, err := metered(g.Pid(), func() error { return g.pace(ctx, networkInterval, blocks) })
	if err != nil {
		return err
	}
	after, err := g.Metrics()
	if err != nil {
		return err
	}
	if err := settle(ctx, pool, len(wanted), want); err != nil {
		return err
	}
	late, updates := pool.Times(), 0
	flat, err := metered(g.Pid(), func() error {
		var slot ledger.Slot
		for began := time.Now(); updates == 0 || time.Since(began) < r.Duration; updates += g.feed.Config().Updates {
			if slot, err = g.feed.Block(); err != nil {
				return err
			}
		}
		return g.await(ctx, slot)
	})
	if err != nil {
		return err
	}
	if err := settle(ctx, pool, len(wanted), want); err != nil {
		return err
	}
	perUpdate := func(cpu time.Duration, updates int) float64 { return cpu.Seconds() * 1e6 / float64(updates) }
	figures := []report.Figure{
		{Unit: "updates/s", Value: float64(updates) / flat.took.Seconds()},
		{Unit: "flat-out-us/update", Value: perUpdate(flat.server, updates)},
		{Unit: "paced-us/update", Value: perUpdate(paced.server, blocks*g.feed.Config().Updates)},
		{Unit: "ingest-mean-ms", Value: 1e3 * (after[ingestDuration+"_sum"] - before[ingestDuration+"_sum"]) / (after[ingestDuration+"_count"] - before[ingestDuration+"_count"])},
	}
	if len(wanted) > 0 {
		figures = append(figures, times("", late)...)
	}
	return r.Record(subject, updates, figures...)
}
