package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/peer"
	"ledgerd/bench/proc"
	"ledgerd/bench/report"
)

var clusterScenarios = []Scenario{
	{"cluster-rate", "How many account updates a second pass a log on three nats-servers, each of which syncs every message, and are visible at a replica.", onCluster((*cluster).rates)},
	{"cluster-lag", "How long after a block of a busy network was due a replica shows it, and what one replica and three cost the ingester.", onCluster((*cluster).lags)},
	{"cluster-fresh", "How long a replica with an empty disk takes to its first right answer, with 1,000,000 accounts.", onCluster((*cluster).fresh)},
	{"cluster-failover", "How long after the active ingester was killed a replica shows the next block.", onCluster((*cluster).failovers)},
}

var clusterGoals = []report.Goal{
	{Scenario: "cluster-rate", Subject: "replica", Unit: "updates/s", AtLeast: 150_000},
	{Scenario: "cluster-lag", Subject: "replicas=1", Unit: "p99-ms", AtMost: 100},
	{Scenario: "cluster-lag", Subject: "replicas=3", Unit: "p99-ms", AtMost: 100},
	{Scenario: "cluster-lag", Subject: "replicas=3", Unit: "ingester-cores", Of: "replicas=1", AtMost: 1.05},
	{Scenario: "cluster-fresh", Subject: "replica", Unit: "start-s", AtMost: 10},
	{Scenario: "cluster-failover", Subject: "replica", Unit: "longest-s", AtMost: 5},
}

const (
	clusterFresh      = 1_000_000 // accounts
	clusterRateBlocks = 500
	// failoverSource shows a block often, so that what is timed is the cluster and not the ledger.
	failoverSource = "sim:accounts=1000,tps=200,slot_time=100ms,fork_rate=0,skip_rate=0"
	failoverTries  = 3 // a round
)

// cluster is nats-servers that nodes share logs on: one for each measurement.
type cluster struct {
	*Run
	nats *proc.NATS
	logs int
}

// onCluster returns what runs a scenario with three nats-servers of its own.
func onCluster(run func(c *cluster, ctx context.Context) error) func(ctx context.Context, r *Run) error {
	return func(ctx context.Context, r *Run) error {
		program, err := peer.FindNATS(r.Ledgerd)
		if err != nil {
			return err
		}
		nats, err := proc.StartNATS(ctx, program, proc.NATSOptions{Dir: r.Dir, Servers: 3})
		if err != nil {
			return err
		}
		return errors.Join(run(&cluster{Run: r, nats: nats}, ctx), nats.Stop(),
			r.Note("nats-servers with sync_interval: always, all nodes and the load share the processors and one disk; nodes sync logs of their own too"))
	}
}

// nextLog lets the nodes that are started from now on share a new log.
func (c *cluster) nextLog() { c.logs++ }

// node returns the flags of a node with a role.
func (c *cluster) node(role string, args ...string) []string {
	log := fmt.Sprintf("nats://%s/BENCH%d", strings.Join(c.nats.Addresses(), ","), c.logs)
	return append([]string{"--role", role, "--log", log, "--wal-sync", "always", "--snapshot-interval", "0", "--log-level", "error"}, args...) // servers that have just begun are warned of
}

// replica starts a node that follows the log.
func (c *cluster) replica(ctx context.Context, args ...string) (*proc.Server, error) {
	return proc.Start(ctx, c.Ledgerd, append(c.node("replica", "--source", "none"), args...), proc.Options{Dir: c.Dir})
}

// rates has an ingester read a file as fast as it goes.
func (c *cluster) rates(ctx context.Context) error {
	dir, remove, err := c.TempDir()
	if err != nil {
		return err
	}
	defer remove()
	s := &ingest{Run: c.Run, config: feed.Config{Accounts: max(c.Scaled(networkAccounts), ingestUpdates), Updates: ingestUpdates, Tokens: ingestTokens}}
	s.events = filepath.Join(dir, "ledger.events")
	if s.newest, err = writeLedger(s.events, s.config, max(c.Scaled(clusterRateBlocks), ingestLeast)); err != nil {
		return err
	}
	for range c.Rounds {
		c.nextLog()
		if err := c.rate(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// rate times one reading of the file: from the first block seen at the replica to the last.
func (c *cluster) rate(ctx context.Context, s *ingest) error {
	replica, err := c.replica(ctx)
	if err != nil {
		return err
	}
	defer replica.Kill()
	ingester, err := startReading(ctx, c.Run, "", s.events, c.node("ingest")...)
	if err != nil {
		return err
	}
	defer ingester.Kill()
	first, err := awaitMetrics(ctx, replica, time.Millisecond, func(m map[string]float64) bool { return m[processedSlot] >= float64(feed.FirstSlot) })
	if err != nil {
		return err
	}
	processes := [][]int{{ingester.Pid()}, {replica.Pid()}, c.nats.Pids()}
	var before, after [3]usage
	for i, pids := range processes {
		if before[i], err = usageOf(pids...); err != nil {
			return err
		}
	}
	last, err := awaitMetrics(ctx, replica, ingestLook, func(m map[string]float64) bool { return m[processedSlot] >= float64(s.newest) })
	if err != nil {
		return err
	}
	for i, pids := range processes {
		if after[i], err = usageOf(pids...); err != nil {
			return err
		}
	}
	index := slices.Collect(s.config.Indexes(s.newest))[0]
	if err := answers(ctx, replica, s.config.Account(index, s.newest)); err != nil {
		return err
	}
	updates := (float64(s.newest) - first.metrics[processedSlot]) * float64(s.config.Updates)
	return errors.Join(c.Record("replica", int(updates), report.Figure{Unit: "updates/s", Value: updates / last.told.Sub(first.asked).Seconds()},
		report.Figure{Unit: "ingester-cores", Value: after[0].cores(before[0])},
		report.Figure{Unit: "replica-cores", Value: after[1].cores(before[1])},
		report.Figure{Unit: "nats-cores", Value: after[2].cores(before[2])}), ingester.Stop(), replica.Stop())
}

// fresh starts replicas with nothing on their disk, when another one has offered a snapshot.
func (c *cluster) fresh(ctx context.Context) error {
	c.nextLog()
	accounts := c.Scaled(clusterFresh)
	config := feed.Config{Accounts: accounts, Updates: min(networkUpdates, accounts/50), Tokens: ingestTokens, Finality: dataFinality}
	maker, err := c.replica(ctx, "--snapshot-interval", snapshotSoon)
	if err != nil {
		return err
	}
	defer maker.Kill()
	g, err := startRig(ctx, c.Run, config, c.node("ingest")...)
	if err != nil {
		return err
	}
	defer g.Kill()
	if err := g.pace(ctx, networkInterval, dataBlocks+networkWarmup); err != nil {
		return err
	}
	if _, err := awaitMetrics(ctx, maker, 20*time.Millisecond, func(m map[string]float64) bool { return m["ledgerd_cluster_snapshot_offers_total"] > 0 }); err != nil {
		return err
	}
	want := config.Account(untouched(config, g), feed.FirstSlot-1)
	for range c.Rounds {
		began := time.Now()
		s, err := c.replica(ctx)
		if err != nil {
			return err
		}
		err = answers(ctx, s, want)
		took := time.Since(began)
		s.Kill()
		if err = errors.Join(err, c.Record("replica", config.Accounts, report.Figure{Unit: "start-s", Value: took.Seconds()})); err != nil {
			return err
		}
	}
	return errors.Join(g.Stop(), maker.Stop())
}

// untouched returns an account that no block wrote.
func untouched(config feed.Config, g *rig) int {
	index := config.Accounts / 3
	for config.Of(index, feed.FirstSlot, g.feed.Newest()) > 0 {
		index++
	}
	return index
}

// failovers kills the active ingester again and again.
func (c *cluster) failovers(ctx context.Context) error {
	c.nextLog()
	replica, err := c.replica(ctx)
	if err != nil {
		return err
	}
	defer replica.Kill()
	var ingesters [2]*proc.Server
	for i := range ingesters {
		if ingesters[i], err = proc.Start(ctx, c.Ledgerd, c.node("ingest", "--source", failoverSource), proc.Options{Dir: c.Dir}); err != nil {
			return err
		}
		defer func() { ingesters[i].Kill() }()
	}
	if err := replica.Ready(ctx); err != nil {
		return err
	}
	for range c.Rounds {
		longest := time.Duration(0)
		for range c.Scaled(failoverTries) {
			took, err := c.failover(ctx, replica, &ingesters)
			if err != nil {
				return err
			}
			longest = max(longest, took)
		}
		if err := c.Record("replica", c.Scaled(failoverTries), report.Figure{Unit: "longest-s", Value: longest.Seconds()}); err != nil {
			return err
		}
	}
	return errors.Join(replica.Stop(),
		c.Note("from kill -9 of the active ingester, with a standby that keeps up, to when the replica shows a block that it had not; the longest of %d a round", failoverTries))
}

// failover kills the ingester that writes, once the other waits, and returns how long the replica takes to show another block. It starts
// another ingester in place of the killed one.
func (c *cluster) failover(ctx context.Context, replica *proc.Server, ingesters *[2]*proc.Server) (took time.Duration, err error) {
	is := func(role string) func(m map[string]float64) bool {
		return func(m map[string]float64) bool { return m[`ledgerd_cluster_role{role="`+role+`"}`] == 1 }
	}
	writer := -1
	for writer < 0 {
		for i, s := range ingesters {
			if m, err := s.Metrics(); err == nil && is("writer")(m) {
				writer = i
			}
		}
		if err := rest(ctx, 5*time.Millisecond); err != nil {
			return 0, err
		}
	}
	if _, err := awaitMetrics(ctx, ingesters[1-writer], 5*time.Millisecond, is("standby")); err != nil {
		return 0, err
	}
	m, err := replica.Metrics()
	if err != nil {
		return 0, err
	}
	ingesters[writer].Kill()
	killed := time.Now()
	next, err := awaitMetrics(ctx, replica, 5*time.Millisecond, func(now map[string]float64) bool { return now[processedSlot] > m[processedSlot] })
	if err != nil {
		return 0, err
	}
	ingesters[writer], err = proc.Start(ctx, c.Ledgerd, c.node("ingest", "--source", failoverSource), proc.Options{Dir: c.Dir})
	return next.told.Sub(killed), err
}
