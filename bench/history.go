package bench

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/bench/feed"
	"ledgerd/bench/load"
	"ledgerd/bench/report"
	"ledgerd/engine/ledger"
)

var historyScenarios = []Scenario{
	{"history", "How long a transaction of a week ago takes from disk, and what readers of accounts notice of 64 clients that ask for such.", runHistory},
}

var historyGoals = []report.Goal{
	{Scenario: "history", Subject: "beside-history", Unit: "p99-ms", Of: "alone", AtMost: 1.2,
		Why:   "reads from disk are few at a time, and none is where accounts are read",
		Needs: "a processor for the clients of history, which here share two with all others"},
}

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
func runHistory(ctx context.Context, r *Run) error {
	r.Note("%d blocks, each with a transaction, written just before, so that the kernel's memory holds what is read; accounts are asked for at the rate of paced",
		r.Scaled(historyBlocks))
	flags := append([]string{"--snapshot-interval", "10s", "--retain-slots", "100", "--wal-sync", "interval:1s"}, restLimits...)
	g, err := startRig(ctx, r, feed.Config{Accounts: r.Scaled(historyAccounts), Transactions: true, Finality: dataFinality}, flags...)
	if err != nil {
		return err
	}
	for range r.Scaled(historyBlocks) {
		if _, err := g.feed.Block(); err != nil {
			return err
		}
	}
	_, err = awaitMetrics(ctx, g.Server, 100*time.Millisecond, func(m map[string]float64) bool {
		final := float64(g.feed.Newest() - dataFinality)
		return m[finalizedSlot] >= final && m["ledgerd_snapshot_slot"] >= final && m["ledgerd_history_from_slot"] <= float64(feed.FirstSlot)
	})
	if err != nil {
		return err
	}
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
	return inTurns(r,
		func() error { return alone.round(ctx, r) },
		func() error { return ago.round(ctx, r) },
		func() error { return besideReaders(ctx, r, &beside, ago) },
	)
}

// besideReaders measures a subject while the connections of another ask as fast as they are answered. Few read the disk at a time, and few wait:
// the others are told that the node is overloaded.
func besideReaders(ctx context.Context, r *Run, s, readers *restSubject) error {
	l := readers.start(r)
	defer l.Close()
	return while(ctx, func(ctx context.Context) error {
		n := l.Phase(ctx, load.Pace{Length: 24 * time.Hour})
		if found := n.Statuses[http.StatusOK]; found == 0 || found+n.Statuses[http.StatusServiceUnavailable] != n.Answered() {
			return fmt.Errorf("readers of history were answered with %v, %v", n.Statuses, n.Wrong)
		}
		return nil
	}, func() error { return s.round(ctx, r) })
}
