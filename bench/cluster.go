package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/peer"
	"ledgerd/bench/proc"
	"ledgerd/engine/ledger"
)

// Cluster returns the scenarios of several nodes that share one log on nats-servers.
func Cluster() []Scenario {
	return []Scenario{
		clusterScenario("cluster-rate", "How many account updates a second pass a log on three nats-servers, each of which syncs every message, and are visible at a replica.", (*clusterRun).rates),
		clusterScenario("cluster-lag", "How long after a block of a busy network was due a replica shows it, and what one replica and three cost the ingester.", (*clusterRun).lags),
		clusterScenario("cluster-fresh", "How long a replica with an empty disk takes to its first right answer.", (*clusterRun).fresh),
		clusterScenario("cluster-failover", "How long after the active ingester was killed a replica shows the next block.", (*clusterRun).failovers),
	}
}

func clusterScenario(name, help string, run func(*clusterRun, context.Context) error) Scenario {
	return Scenario{
		Name: name, Help: help, Own: "it starts nodes of a cluster",
		Run: func(ctx context.Context, env *Env) (*Result, error) {
			c := &clusterRun{env: env, result: &Result{Scenario: name}}
			err := run(c, ctx)
			if absent := (*peer.AbsentError)(nil); errors.As(err, &absent) {
				c.result.Notes = append(c.result.Notes, "left out: "+absent.Error())
				return c.result, nil
			}
			return c.result, err
		},
	}
}

const (
	// clusterRateLimit is twenty times the rate of a busy main network, in thousands a second.
	clusterRateLimit   = 150
	clusterLagLimit    = 100 * time.Millisecond
	clusterFreshLimit  = 10 * time.Second
	clusterFresh       = 1_000_000 // accounts
	clusterRateBlocks  = 500
	clusterMostReaders = 3
	// clusterCostLimit is what the ingester's CPU with three replicas is to be of that with one.
	clusterCostLimit = 1.05
	snapshotOffers   = "ledgerd_cluster_snapshot_offers_total"
)

// clusterRun is one run of a scenario.
type clusterRun struct {
	env    *Env
	result *Result
	nats   *peer.NATSCluster
	stream string // a log for each measurement
	logs   int
}

// begin starts the servers of the log, and returns what stops them.
func (c *clusterRun) begin(ctx context.Context) (stop func() error, err error) {
	if c.nats, err = peer.StartNATSCluster(ctx, peer.Config{Self: []string{c.env.Ledgerd}, Dir: c.env.Dir}); err != nil {
		return nil, err
	}
	c.result.version("nats-server", peer.NATSVersion(ctx, c.env.Ledgerd))
	return c.nats.Stop, nil
}

// nextLog lets the nodes that are started from now on share a new log.
func (c *clusterRun) nextLog() {
	c.logs++
	c.stream = fmt.Sprintf("BENCH%d", c.logs)
}

// log returns the flags of a node with a role.
func (c *clusterRun) log(role string) []string {
	address := "nats://"
	for i, a := range c.nats.Addresses() {
		if i > 0 {
			address += ","
		}
		address += a
	}
	return []string{"--role", role, "--log", address + "/" + c.stream, "--wal-sync", "always", "--log-level", "error"} // servers that have just begun are warned of
}

// replica starts a node that follows the log.
func (c *clusterRun) replica(ctx context.Context, args ...string) (*proc.Server, error) {
	args = slices.Concat([]string{"--source", "none"}, c.log("replica"), args)
	return proc.Start(ctx, c.env.Ledgerd, args, proc.Options{Dir: c.env.Dir})
}

// rates has an ingester read a file as fast as it goes.
func (c *clusterRun) rates(ctx context.Context) (err error) {
	stop, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	dir, remove, err := dataDir(c.env, "cluster")
	if err != nil {
		return err
	}
	defer remove()
	config := feed.Config{Accounts: max(c.env.Scaled(networkAccounts), ingestUpdates), Updates: ingestUpdates, Tokens: ingestTokens}
	path := filepath.Join(dir, "ledger.events")
	newest, err := writeLedger(path, config, max(c.env.Scaled(clusterRateBlocks), ingestLeast))
	if err != nil {
		return err
	}
	for round := range c.env.Rounds {
		c.nextLog()
		if err := c.rate(ctx, config, path, newest); err != nil {
			return err
		}
		c.env.Say("cluster-rate round %d: %s updates/s", round+1, thousands(c.result.Row(ledgerdCluster).last("updates")))
	}
	c.result.Goals = []Goal{{
		What: "thousands of account updates a second, visible at a replica", Least: true, Limit: clusterRateLimit,
		Value: c.result.median(ledgerdCluster, "updates") / 1e3,
	}}
	c.result.Notes = append(c.result.Notes, "Three nats-servers with sync_interval: always, an ingester and a replica share the processors and one disk. Both nodes sync their own logs too.")
	return nil
}

const ledgerdCluster = "ingester and one replica"

// rate times one reading of the file: from the first block seen at the replica to the last.
func (c *clusterRun) rate(ctx context.Context, config feed.Config, path string, newest ledger.Slot) error {
	server, err := c.replica(ctx, "--snapshot-interval", "0")
	if err != nil {
		return err
	}
	defer server.Kill()
	ingester, err := startReading(ctx, c.env, "", path, append(c.log("ingest"), "--snapshot-interval", "0")...)
	if err != nil {
		return err
	}
	defer ingester.Kill()
	replica := &reading{server, ingester.began}
	first, err := replica.await(ctx, time.Millisecond, func(m map[string]float64) bool { return m[processedSlot] >= float64(feed.FirstSlot) })
	if err != nil {
		return err
	}
	spent, err := c.cpu(ingester.Server, server)
	if err != nil {
		return err
	}
	last, err := replica.await(ctx, ingestLook, func(m map[string]float64) bool { return m[processedSlot] >= float64(newest) })
	if err != nil {
		return err
	}
	now, err := c.cpu(ingester.Server, server)
	if err != nil {
		return err
	}
	index := slices.Collect(config.Indexes(newest))[0]
	if err := answers(ctx, server, config.Account(index, newest)); err != nil {
		return err
	}
	took := last.told.Sub(first.asked).Seconds()
	updates := (float64(newest) - first.metrics[processedSlot]) * float64(config.Updates)
	row := c.result.Row(ledgerdCluster)
	row.Add("updates", "updates/s", updates/took)
	for i, name := range []string{"ingester", "replica", "nats-servers"} {
		row.Add("CPU of the "+name, "cores", (now[i]-spent[i]).Seconds()/took)
	}
	return errors.Join(ingester.Stop(), server.Stop())
}

// cpu returns what the ingester, the replica and the servers of the log have used.
func (c *clusterRun) cpu(ingester, replica *proc.Server) (spent [3]time.Duration, err error) {
	for i, pids := range [][]int{{ingester.Pid()}, {replica.Pid()}, c.nats.Pids()} {
		for _, pid := range pids {
			used, err := cpuOf(pid)
			if err != nil {
				return spent, err
			}
			spent[i] += used
		}
	}
	return spent, nil
}

// fresh starts replicas with nothing on their disk, when another one has offered a snapshot.
func (c *clusterRun) fresh(ctx context.Context) (err error) {
	stop, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	c.nextLog()
	config := feed.Config{Accounts: c.env.Scaled(clusterFresh), Updates: min(networkUpdates, c.env.Scaled(clusterFresh)), Tokens: ingestTokens, Finality: dataFinality}
	maker, err := c.replica(ctx, "--snapshot-interval", snapshotSoon)
	if err != nil {
		return err
	}
	defer maker.Kill()
	r, err := startRig(ctx, c.env, config, append(c.log("ingest"), "--snapshot-interval", "0")...)
	if err != nil {
		return err
	}
	defer r.Kill()
	if err := r.pace(ctx, networkInterval, dataBlocks+networkWarmup); err != nil {
		return err
	}
	if _, err := (&reading{maker, time.Now()}).await(ctx, 20*time.Millisecond, func(m map[string]float64) bool { return m[snapshotOffers] > 0 }); err != nil {
		return err
	}
	subject := fmt.Sprintf("replica, %s accounts", thousands(float64(config.Accounts)))
	want := config.Account(untouched(config, r.feed.Newest()), feed.FirstSlot-1)
	for round := range c.env.Rounds {
		began := time.Now()
		s, err := c.replica(ctx, "--snapshot-interval", "0")
		if err != nil {
			return err
		}
		err = answers(ctx, s, want)
		took := time.Since(began)
		s.Kill()
		if err != nil {
			return err
		}
		c.result.Row(subject).Add("start", "s", took.Seconds())
		c.env.Say("cluster-fresh round %d: %.2f s", round+1, took.Seconds())
	}
	c.result.Goals = []Goal{{
		What:  "seconds from the process to the first right answer",
		Value: c.result.median(subject, "start"), Limit: clusterFreshLimit.Seconds() * math.Max(1, float64(config.Accounts)/clusterFresh),
	}}
	return errors.Join(r.Stop(), maker.Stop())
}

// untouched returns an account that no block up to a slot wrote.
func untouched(config feed.Config, newest ledger.Slot) int {
	written := map[int]bool{}
	for slot := feed.FirstSlot; slot <= newest; slot++ {
		for index := range config.Indexes(slot) {
			written[index] = true
		}
	}
	index := config.Accounts / 3
	for written[index] {
		index++
	}
	return index
}
