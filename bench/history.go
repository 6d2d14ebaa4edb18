package bench

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/bench/feed"
	"ledgerd/bench/load"
	"ledgerd/engine/ledger"
)

const (
	// historyBlocks are those of 30 days, of which historyAgo are the newest week.
	historyBlocks = 30 * 24 * 60 * 60 * 1000 / 400
	historyAgo    = historyBlocks * 7 / 30
	// historyDay is from how many slots transactions are asked for.
	historyDay      = historyBlocks / 30
	historyAccounts = 200_000
	// historyPace is how many transactions are asked for in a second where the time is taken that one takes.
	historyPace = 500
)

// runHistory writes thirty days of blocks once, of which all but the newest are on disk alone.
func runHistory(ctx context.Context, r *Run) {
	r.Note("%d blocks, each with a transaction, written just before, so that the kernel's memory holds what is read; accounts are asked for at the rate of paced",
		r.Scaled(historyBlocks))
	flags := append([]string{"--snapshot-interval", "10s", "--retain-slots", "100", "--wal-sync", "interval:1s"}, restLimits...)
	g := startRig(ctx, r, feed.Config{Accounts: r.Scaled(historyAccounts), Transactions: true, Finality: dataFinality}, flags...)
	for range r.Scaled(historyBlocks) {
		got(g.feed.Block())
	}
	awaitMetrics(ctx, g.Server, 100*time.Millisecond, func(m map[string]float64) bool {
		final := float64(g.feed.Newest() - dataFinality)
		return m[finalizedSlot] >= final && m["ledgerd_snapshot_slot"] >= final && m["ledgerd_history_from_slot"] <= float64(feed.FirstSlot)
	})
	known := func(int, *fasthttp.Response) error { return nil } // that the status is 200 says all
	address, pids := load.Config{Address: g.address()}, func() []int { return []int{g.Pid()} }
	alone := &restSubject{name: "alone", of: g.feed.Config().Accounts, ask: g.getAccount, verify: known, load: address, pids: pids, rate: float64(r.Scaled(restPace))}
	beside := *alone
	beside.name = "beside-history"
	first := g.feed.Newest() - ledger.Slot(r.Scaled(historyAgo))
	ago := &restSubject{name: "week-ago", of: r.Scaled(historyDay), verify: known, load: address, pids: pids, rate: float64(r.Scaled(historyPace)),
		ask: func(index int) []byte {
			return load.Get(g.address().String(), "/api/transaction/"+feed.Signature(first+ledger.Slot(index)).String(), nil)
		}}
	inTurns(r,
		func() { alone.round(ctx, r) },
		func() { ago.round(ctx, r) },
		func() { besideReaders(ctx, r, &beside, ago) },
	)
}

// besideReaders measures a subject while the connections of another ask as fast as they are answered. Few read the disk at a time, and few wait:
// the others are told that the node is overloaded.
func besideReaders(ctx context.Context, r *Run, s, readers *restSubject) {
	l := readers.start(r)
	defer l.Close()
	while(ctx, func(ctx context.Context) {
		n := l.Phase(ctx, load.Pace{Length: 24 * time.Hour})
		if found := n.Statuses[http.StatusOK]; found == 0 || found+n.Statuses[http.StatusServiceUnavailable] != n.Answered() {
			check(fmt.Errorf("readers of history were answered with %v, %v", n.Statuses, n.Wrong))
		}
	}, func() { s.round(ctx, r) })
}
