package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/peer"
	"ledgerd/bench/proc"
	"ledgerd/bench/report"
	"ledgerd/engine/ledger"
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
	logs int // so far: nodes that are started share the newest
}

// onCluster returns what runs a scenario with three nats-servers of its own.
func onCluster(run func(c *cluster, ctx context.Context) error) func(ctx context.Context, r *Run) error {
	return func(ctx context.Context, r *Run) error {
		program, err := peer.Find("nats-server", r.Ledgerd)
		if err != nil {
			return err
		}
		nats, err := proc.StartNATS(ctx, program, proc.NATSOptions{Dir: r.Dir, Servers: 3})
		if err != nil {
			return err
		}
		r.atEnd(func(bool) error { return nats.Stop() })
		r.Note("nats-servers with sync_interval: always, all nodes and the load share the processors and one disk; nodes sync logs of their own too")
		return run(&cluster{Run: r, nats: nats}, ctx)
	}
}

// node returns the flags of a node with a role.
func (c *cluster) node(role string, flags ...string) []string {
	log := fmt.Sprintf("nats://%s/BENCH%d", strings.Join(c.nats.Addresses(), ","), c.logs)
	return append([]string{"--role", role, "--log", log, "--ops-advertise", "127.0.0.1", "--log-level", "error"}, flags...) // servers that have just begun are warned of
}

// replica starts a node that follows the log.
func (c *cluster) replica(ctx context.Context, flags ...string) (*proc.Server, error) {
	return c.start(ctx, "", append(c.node("replica", "--source", "none"), flags...)...)
}

// rates has an ingester read a file as fast as it goes.
func (c *cluster) rates(ctx context.Context) error {
	s, err := writeIngest(c.Run, networkAccounts, clusterRateBlocks)
	if err != nil {
		return err
	}
	return turns(c.Run, []string{"replica"}, func(subject string) error {
		c.logs++
		replica, err := c.replica(ctx)
		if err != nil {
			return err
		}
		ingester, err := c.start(ctx, "", c.node("ingest", "--source", "file:"+s.events)...)
		if err != nil {
			return err
		}
		p, err := s.watch(ctx, replica, []int{ingester.Pid()}, []int{replica.Pid()}, c.nats.Pids())
		if err == nil {
			c.Record(subject, int(p.updates), append([]report.Figure{{Unit: "updates/s", Value: p.updates / p.seconds()}},
				p.cores("ingester", "replica", "nats")...)...)
		}
		return err
	})
}

// fresh starts replicas with nothing on their disk, when another one has offered a snapshot.
func (c *cluster) fresh(ctx context.Context) error {
	c.logs++
	accounts := c.Scaled(clusterFresh)
	config := feed.Config{Accounts: accounts, Updates: min(networkUpdates, accounts/50), Tokens: ingestTokens, Finality: dataFinality}
	maker, err := c.replica(ctx, "--snapshot-interval", snapshotSoon)
	if err != nil {
		return err
	}
	g, err := startRig(ctx, c.Run, config, c.node("ingest")...)
	if err == nil {
		err = g.pace(ctx, networkInterval, dataBlocks+networkWarmup)
	}
	if err == nil {
		_, err = awaitMetrics(ctx, maker, 20*time.Millisecond, func(m map[string]float64) bool { return m["ledgerd_cluster_snapshot_offers_total"] > 0 })
	}
	if err != nil {
		return err
	}
	want := config.Account(untouched(config, g), feed.FirstSlot-1)
	return turns(c.Run, []string{"replica"}, func(subject string) error {
		began := time.Now()
		s, err := c.replica(ctx)
		if err == nil {
			err = answers(ctx, s, want)
		}
		if err == nil {
			c.Record(subject, accounts, report.Figure{Unit: "start-s", Value: time.Since(began).Seconds()})
		}
		return err
	})
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
	c.Note("from kill -9 of the active ingester, with a standby that keeps up, to when the replica shows a block that it had not; the longest of %d a round", failoverTries)
	c.logs++
	replica, err := c.replica(ctx)
	var ingesters [2]*proc.Server
	for i := range ingesters {
		if err == nil {
			ingesters[i], err = c.ingester(ctx)
		}
	}
	if err == nil {
		err = replica.Ready(ctx)
	}
	if err != nil {
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
		c.Record("replica", c.Scaled(failoverTries), report.Figure{Unit: "longest-s", Value: longest.Seconds()})
	}
	return nil
}

// ingester starts a node that writes the log or stands by.
func (c *cluster) ingester(ctx context.Context) (*proc.Server, error) {
	return c.start(ctx, "", c.node("ingest", "--source", failoverSource)...)
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
	next, err := awaitSlot(ctx, replica, 5*time.Millisecond, ledger.Slot(m[processedSlot])+1)
	if err != nil {
		return 0, err
	}
	ingesters[writer], err = c.ingester(ctx)
	return next.told.Sub(killed), err
}
