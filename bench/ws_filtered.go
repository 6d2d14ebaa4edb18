package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"ledgerd/bench/feed"
)

// filtered has ten times a busy network's updates ingested, with nobody listening and with a
// crowd that names accounts, in turns. What is asked is how much the crowd slows ingest.
var filtered = Scenario{
	Name: "filtered",
	Help: "How much 10,000 subscribers of 10 accounts each slow ingest down, at 75,000 updates a second and flat out.",
	Own:  "it writes blocks as fast as the server reads them",
	Run:  runFiltered,
}

const (
	filteredSubscribers = 10_000
	filteredKeys        = 10
	filteredAccounts    = 1_000_000
	filteredUpdates     = 30_000 // of a block
	filteredLimit       = 10     // percent
	filteredSeed        = 7
)

func runFiltered(ctx context.Context, env *Env) (*Result, error) {
	result := &Result{Scenario: "filtered"}
	count, note, err := socketRoom(env.Scaled(filteredSubscribers))
	if err != nil {
		return nil, err
	}
	if note != "" {
		result.Notes = append(result.Notes, note)
	}
	accounts := max(env.Scaled(filteredAccounts), filteredKeys)
	r, err := startRig(ctx, env, feed.Config{Accounts: accounts, Updates: min(env.Scaled(filteredUpdates), accounts)})
	if err != nil {
		return nil, err
	}
	defer r.Kill()
	if err := r.pace(ctx, networkInterval, networkWarmup); err != nil {
		return nil, err
	}
	f := &filteredRun{env: env, rig: r, result: result, count: count}
	for round := range env.Rounds {
		if err := f.round(ctx, round); err != nil {
			return nil, err
		}
	}
	if err := r.Stop(); err != nil {
		return nil, err
	}
	slowed := result.Row("slowed")
	result.Goals = []Goal{
		{What: "% longer until ingested, mean, at the pace", Value: slowed.figure("ingested, mean").Median(), Limit: filteredLimit},
		{What: "% fewer updates a second, flat out", Value: slowed.figure("flat out").Median(), Limit: filteredLimit},
	}
	result.Notes = append(result.Notes,
		"Ingested is from when the server took a block until it was durable and visible.",
		"Published is from when a block was due to when a subscriber of no account is told its end.",
		"Flat out, a block follows the other as fast as the server reads them, and the subscribers take their share of the processors.")
	return result, nil
}

// filteredRun is one run of the scenario.
type filteredRun struct {
	env    *Env
	rig    *rig
	result *Result
	count  int
}

// round measures without and with the crowd; who comes first takes turns too.
func (f *filteredRun) round(ctx context.Context, round int) error {
	var without, with float64
	for _, crowded := range []bool{round%2 == 1, round%2 == 0} {
		var err error
		if crowded {
			with, err = f.crowded(ctx, round)
		} else {
			without, err = f.measure(ctx, f.result.Row("nobody"), nil)
		}
		if err != nil {
			return err
		}
	}
	f.result.Row("slowed").Add("flat out", "%", 100*(1-with/without))
	for _, figure := range []string{"ingested, mean", "published p50", "CPU of an update", "CPU of an update, flat out"} {
		more := f.result.Row(f.crowd()).last(figure)/f.result.Row("nobody").last(figure) - 1
		f.result.Row("slowed").Add(figure, "%", 100*more)
	}
	f.env.Say("filtered round %d: flat out %.0f updates/s without subscribers, %.0f with %d", round+1, without, with, f.count)
	return nil
}

func (f *filteredRun) crowd() string { return fmt.Sprintf("%d subscribers", f.count) }

// crowded lets the crowd in, measures, and sees it out.
func (f *filteredRun) crowded(ctx context.Context, round int) (rate float64, err error) {
	dice := rand.New(rand.NewPCG(filteredSeed, uint64(round)))
	wanted := make([][]int, f.count) // dialling is not in order
	for i := range wanted {
		seen := make(map[int]bool, filteredKeys)
		for len(seen) < filteredKeys {
			seen[dice.IntN(f.rig.feed.Config().Accounts)] = true
		}
		for index := range seen {
			wanted[i] = append(wanted[i], index)
		}
	}
	crowd, err := join(ctx, f.rig, f.count, func(i int) []int { return wanted[i] })
	if err != nil {
		return 0, err
	}
	defer crowd.leave()
	row := f.result.Row(f.crowd())
	timed := crowd.time()
	if rate, err = f.measure(ctx, row, crowd); err != nil {
		return 0, err
	}
	addLatency(row, "received ", timed.latency)
	row.Add("frames", "k", float64(timed.latency.Count())/1e3)
	return rate, nil
}

// measure notes how ingest does at a pace and flat out. It returns the updates a second of the
// latter.
func (f *filteredRun) measure(ctx context.Context, row *Row, crowd *group) (rate float64, err error) {
	if err := f.paced(ctx, row); err != nil {
		return 0, err
	}
	if crowd != nil {
		if err := crowd.settle(ctx); err != nil {
			return 0, err
		}
		crowd.timed.Store(nil) // flat out, latency is how full the pipe is
	}
	if rate, err = f.flatOut(ctx, row); err != nil || crowd == nil {
		return rate, err
	}
	return rate, crowd.settle(ctx)
}

// paced ingests as many updates a second as there are in ten busy networks.
func (f *filteredRun) paced(ctx context.Context, row *Row) error {
	f.rig.publications() // those that nobody asked for
	was, err := f.rig.Metrics()
	if err != nil {
		return err
	}
	before, err := f.rig.spent()
	if err != nil {
		return err
	}
	blocks := max(1, int(f.env.Duration/networkInterval))
	if err := f.rig.pace(ctx, networkInterval, blocks); err != nil {
		return err
	}
	after, err := f.rig.spent()
	if err != nil {
		return err
	}
	server, _, _ := after.since(before)
	addLatency(row, "published ", f.rig.publications())
	if err := f.addIngest(row, was); err != nil {
		return err
	}
	row.Add("CPU of an update", "µs", server.Seconds()*1e6/float64(blocks*f.rig.feed.Config().Updates))
	after.addCores(row, before)
	return nil
}

// ingestDuration is what the server says of the blocks since it took them from its source.
const ingestDuration = "ledgerd_ingest_duration_seconds"

// addIngest notes how long the server took on average until a block was durable and visible, since
// its metrics were read.
func (f *filteredRun) addIngest(row *Row, was map[string]float64) error {
	now, err := f.rig.Metrics()
	if err != nil {
		return err
	}
	seconds := now[ingestDuration+"_sum"] - was[ingestDuration+"_sum"]
	row.Add("ingested, mean", "ms", 1e3*seconds/(now[ingestDuration+"_count"]-was[ingestDuration+"_count"]))
	return nil
}

// flatOut ingests one block after the other, as fast as the server reads them.
func (f *filteredRun) flatOut(ctx context.Context, row *Row) (rate float64, err error) {
	before, err := f.rig.spent()
	if err != nil {
		return 0, err
	}
	updates := 0
	for updates == 0 || time.Since(before.at) < f.env.Duration {
		if _, err := f.rig.feed.Block(); err != nil {
			return 0, err
		}
		updates += f.rig.feed.Config().Updates
	}
	if err := f.rig.await(ctx, f.rig.feed.Newest()); err != nil {
		return 0, err
	}
	after, err := f.rig.spent()
	if err != nil {
		return 0, err
	}
	server, _, took := after.since(before)
	rate = float64(updates) / took.Seconds()
	row.Add("flat out", "k/s", rate/1e3)
	row.Add("CPU of an update, flat out", "µs", server.Seconds()*1e6/float64(updates))
	return rate, nil
}
