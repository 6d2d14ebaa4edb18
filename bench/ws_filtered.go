package bench

import (
	"context"
	"fmt"
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
	filteredData        = 8      // bytes of each account, which JSON-RPC tells
)

// ingestDuration is what the server says of the blocks since it took them from its source.
const ingestDuration = "ledgerd_ingest_duration_seconds"

// runFiltered has ten times a busy network's updates ingested, with nobody listening and with subscribers that name accounts,
// in turns.
func runFiltered(ctx context.Context, r *Run) {
	r.Note("ingest is from when the server took a block until it was durable and visible; flat out (updates/s) a block follows the other " +
		"as fast as the server reads them, and the subscribers take their share of the processors")
	r.Note("subscribers are of the stream, rpc-subscribers of JSON-RPC: accountSubscribe at processed, base64")
	accounts := max(r.Scaled(filteredAccounts), filteredKeys)
	g := startRig(ctx, r, feed.Config{Accounts: accounts, Updates: min(r.Scaled(filteredUpdates), accounts), Data: filteredData},
		"--data", "all", "--rpc-listen", "127.0.0.1:0")
	said := got(g.Await(ctx, rpcAddress))
	g.pace(ctx, networkInterval, networkWarmup)
	wanted := make([][]int, r.Scaled(filteredSubscribers))
	for i := range wanted {
		for k := range filteredKeys { // primes: different accounts from anywhere
			wanted[i] = append(wanted[i], (i*7919+k*104729)%accounts)
		}
	}
	stream := listen.Config{URL: g.StreamURL(), Sockets: len(wanted), Query: func(i int) url.Values { return named(wanted[i]) }}
	rpc := listen.Config{URL: "ws://" + said[1] + "/", Sockets: len(wanted), Opening: func(i int) (calls [][]byte) {
		for _, index := range wanted[i] {
			calls = append(calls, []byte(rpcCall("accountSubscribe", `"`+keyOf(index)+`"`)))
		}
		return calls
	}}
	inTurns(r,
		func() { measureFiltered(ctx, r, g, "nobody", nil, listen.Config{}, 0) },
		func() { measureFiltered(ctx, r, g, "subscribers", wanted, stream, 0) },
		func() { measureFiltered(ctx, r, g, "rpc-subscribers", wanted, rpc, filteredKeys) },
	)
}

// measureFiltered records how ingest does at a pace and flat out, with subscribers of some accounts each, who are first answered so many
// times each. What they receive is counted exactly.
func measureFiltered(ctx context.Context, r *Run, g *rig, subject string, wanted [][]int, subscribers listen.Config, answers int64) {
	first := g.feed.Newest()
	without := r.settled(ctx, g.Pid())
	pool := r.open(ctx, subscribers)
	check(pool.Await(ctx, func(int) int64 { return answers }))
	var connected []report.Figure
	if len(wanted) > 0 {
		with := r.settled(ctx, g.Pid())
		connected = []report.Figure{{Unit: "rss-KiB/conn", Value: float64(with-without) / (1 << 10) / float64(len(wanted))}}
	}
	ingested := got(g.Metrics())
	g.pace(ctx, networkInterval, r.networkBlocks())
	after := got(g.Metrics())
	more := func(name string) float64 { return after[ingestDuration+name] - ingested[ingestDuration+name] }
	mean := more("_sum") / more("_count")
	began, updates := time.Now(), 0
	for ; updates == 0 || time.Since(began) < r.Duration; updates += g.feed.Config().Updates {
		got(g.feed.Block())
	}
	g.await(ctx, g.feed.Newest())
	took := time.Since(began)
	frames, all := make([]int64, len(wanted)), int64(0)
	for i := range wanted {
		frames[i] = answers
		for _, index := range wanted[i] {
			frames[i] += int64(g.feed.Config().Of(index, first+1, g.feed.Newest()))
		}
		all += frames[i]
	}
	check(pool.Await(ctx, func(i int) int64 { return frames[i] }))
	if received := pool.Counts().Frames; received != all {
		check(fmt.Errorf("%d subscribers have received %d frames, not %d", len(wanted), received, all))
	}
	r.Record(subject, updates, append(connected, report.Figure{Unit: "updates/s", Value: float64(updates) / took.Seconds()},
		report.Figure{Unit: "ingest-mean-ms", Value: 1e3 * mean})...)
}
