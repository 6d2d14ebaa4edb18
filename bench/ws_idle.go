package bench

import (
	"context"
	"fmt"
	"time"

	"ledgerd/bench/feed"
)

// idle has a crowd connected to which nothing is ever said: each names accounts that do not
// change. What is asked is what a connection costs.
var idle = Scenario{
	Name: "idle",
	Help: "What 15,000 connections with 10 accounts each cost that never change: memory, and CPU.",
	Own:  "it compares the server's memory with that of one that nobody is connected to",
	Run:  runIdle,
}

const (
	idleSubscribers = 15_000
	idleKeys        = 10
	idleAccounts    = 20_000
	// idleSettle and idleWatch are how long the server is left alone before its memory is read,
	// and how long its CPU is watched, in durations of a measurement. At the usual 10 s this
	// is 30 s, and 20 s: as long as it takes for every connection to be pinged once.
	idleSettle, idleWatch = 3, 2
	idleLimitBytes        = 12 << 10
)

func runIdle(ctx context.Context, env *Env) (*Result, error) {
	result := &Result{Scenario: "idle"}
	count, note, err := socketRoom(env.Scaled(idleSubscribers))
	if err != nil {
		return nil, err
	}
	if note != "" {
		result.Notes = append(result.Notes, note)
	}
	result.Notes = append(result.Notes,
		"CPU is watched while no block comes (quiet), and while blocks come that none of them is told (busy).",
		"Memory is read when the server has been left alone for a while, and later, after blocks.")
	for round := range env.Rounds {
		if err := measureIdle(ctx, env, result, count); err != nil {
			return nil, err
		}
		env.Say("idle round %d: %d connections take %.1f KiB each", round+1, count, result.Row("connected").last("memory of each"))
	}
	result.Goals = []Goal{{
		What:  fmt.Sprintf("KiB of resident memory for each of %d idle connections", count),
		Value: result.Row("connected").figure("memory of each").Median(), Limit: idleLimitBytes >> 10,
	}}
	return result, nil
}

// measureIdle runs a server for one round, first alone and then with the crowd.
func measureIdle(ctx context.Context, env *Env, result *Result, count int) error {
	updates := env.Scaled(networkUpdates)
	config := feed.Config{Accounts: max(env.Scaled(idleAccounts), updates), Updates: updates}
	r, err := startRig(ctx, env, config)
	if err != nil {
		return err
	}
	defer r.Kill()
	before, err := r.watch(ctx, env, result.Row("alone"))
	if err != nil {
		return err
	}
	began := time.Now()
	crowd, err := join(ctx, r, count, func(i int) []int {
		keys := make([]int, idleKeys)
		for k := range keys {
			keys[k] = config.Accounts + i*idleKeys + k // no account of the ledger
		}
		return keys
	})
	if err != nil {
		return err
	}
	defer crowd.leave()
	row := result.Row("connected")
	row.Add("time to connect", "s", time.Since(began).Seconds())
	after, err := r.watch(ctx, env, row)
	if err != nil {
		return err
	}
	each := func(bytes int64) float64 { return float64(bytes) / float64(count) / (1 << 10) }
	row.Add("memory of each", "KiB", each(after.settled-before.settled))
	row.Add("memory of each, later", "KiB", each(after.later-before.later))
	if err := crowd.settle(ctx); err != nil { // nobody was told anything, or dropped
		return err
	}
	metrics, err := r.Metrics()
	if err != nil {
		return err
	}
	if got := int(metrics["ledgerd_ws_connections"]); got != count+1 {
		return fmt.Errorf("the server counts %d connections, not %d and the probe", got, count)
	}
	row.Add("goroutines of each", "", metrics["go_goroutines"]/float64(count))
	crowd.leave()
	return r.Stop()
}

// residents are how many bytes of a server were resident: once it had settled, and later, when
// blocks had made it collect its garbage.
type residents struct{ settled, later int64 }

// watch leaves the server alone until it has settled, and returns its resident memory then.
// It notes what CPU it takes without blocks and with them, and returns the memory after those.
func (r *rig) watch(ctx context.Context, env *Env, row *Row) (rss residents, err error) {
	if err := rest(ctx, idleSettle*env.Duration); err != nil {
		return rss, err
	}
	if rss.settled, err = r.memory(row); err != nil {
		return rss, err
	}
	watched := func(name string, busy func() error) error {
		before, err := r.spent()
		if err != nil {
			return err
		}
		if err := busy(); err != nil {
			return err
		}
		after, err := r.spent()
		if err != nil {
			return err
		}
		server, _, took := after.since(before)
		row.Add(name, "ms/s", milliseconds(server)/took.Seconds())
		return nil
	}
	if err := watched("CPU, quiet", func() error { return rest(ctx, idleWatch*env.Duration) }); err != nil {
		return rss, err
	}
	blocks := max(1, int(idleWatch*env.Duration/networkInterval))
	if err := watched("CPU, busy", func() error { return r.pace(ctx, networkInterval, blocks) }); err != nil {
		return rss, err
	}
	usage, err := r.Usage()
	if err != nil {
		return rss, err
	}
	rss.later = usage.RSSBytes
	row.Add("memory, later", "MiB", float64(rss.later)/(1<<20))
	return rss, nil
}

// memory notes what the kernel counts of the server, and what the server says of itself. It
// returns the bytes that are resident.
func (r *rig) memory(row *Row) (rssBytes int64, err error) {
	usage, err := r.Usage() // before the server is asked, which takes memory
	if err != nil {
		return 0, err
	}
	metrics, err := r.Metrics()
	if err != nil {
		return 0, err
	}
	row.Add("memory", "MiB", float64(usage.RSSBytes)/(1<<20))
	row.Add("heap, with garbage", "MiB", metrics["go_memstats_heap_inuse_bytes"]/(1<<20))
	row.Add("stacks", "MiB", metrics["go_memstats_stack_inuse_bytes"]/(1<<20))
	row.Add("threads", "", float64(usage.Threads))
	row.Add("open files", "", float64(usage.FDs))
	return usage.RSSBytes, nil
}

// rest lets time pass.
func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
