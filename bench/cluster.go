package bench

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/latency"
	"ledgerd/bench/listen"
	"ledgerd/bench/proc"
	"ledgerd/bench/report"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/wait"
)

const clusterRateBlocks = 500

// cluster is nats-servers that nodes share logs on: one for each measurement.
type cluster struct {
	*Run
	nats *proc.NATS
	logs int // so far: nodes that are started share the newest
}

// runCluster measures with three nats-servers.
func runCluster(ctx context.Context, r *Run) {
	nats := got(proc.StartNATS(ctx, got(proc.Find("nats-server", r.Ledgerd)), proc.NATSOptions{Dir: r.Dir, Servers: 3}))
	r.atEnd(func() error { return nats.Stop() })
	r.Note("nats-servers with sync_interval: always, all nodes and the load share the processors and one disk; nodes sync logs of their own too")
	r.Note("from due to shown is all of it: the ingester, the log, the replica; of several replicas the slowest counts")
	c := &cluster{Run: r, nats: nats}
	ledger := writeIngest(r, networkAccounts, clusterRateBlocks, 0)
	turns(r, []func(){
		func() { c.rateAlone(ctx, ledger) },
		func() { c.rate(ctx, ledger) },
		func() { c.lag(ctx, "alone", 0) },
		func() { c.lag(ctx, "replicas=1", 1) },
		func() { c.lag(ctx, "replicas=3", 3) },
	}, func(measure func()) {
		c.logs++
		measure()
	})
}

// node returns the flags of a node with a role.
func (c *cluster) node(role string, flags ...string) []string {
	log := fmt.Sprintf("nats://%s/BENCH%d", strings.Join(c.nats.Addresses(), ","), c.logs)
	return append([]string{"--role", role, "--log", log, "--ops-advertise", "127.0.0.1", "--log-level", "error"}, flags...) // servers that have just begun are warned of
}

// replica starts a node that follows the log.
func (c *cluster) replica(ctx context.Context) *proc.Server {
	return c.start(ctx, "", c.node("replica", "--source", "none")...)
}

// rateAlone has a node without a log read a file as fast as it goes.
func (c *cluster) rateAlone(ctx context.Context, s *ingest) {
	c.recordRate(ctx, s, "alone", c.start(ctx, "", "--source", "file:"+s.events))
}

// rate has an ingester read the file, and a replica follow.
func (c *cluster) rate(ctx context.Context, s *ingest) {
	replica := c.replica(ctx)
	c.start(ctx, "", c.node("ingest", "--source", "file:"+s.events)...)
	c.recordRate(ctx, s, "replica", replica)
}

// recordRate records how fast a server comes to show the ledger.
func (c *cluster) recordRate(ctx context.Context, s *ingest, subject string, server *proc.Server) {
	p := s.watch(ctx, server, []int{server.Pid()}, c.nats.Pids())
	c.Record(subject, int(p.updates), append([]report.Figure{{Unit: "updates/s", Value: p.updates / p.seconds()}}, p.cores("server", "nats")...)...)
}

// lag has a busy network's blocks pass the log at the network's pace, and records when so many replicas show them; of none, when the node
// itself does, which then has no log.
func (c *cluster) lag(ctx context.Context, subject string, replicas int) {
	var flags []string
	if replicas > 0 {
		flags = c.node("ingest")
	}
	g := startNetwork(ctx, c.Run, flags...)
	g.pace(ctx, networkInterval, networkWarmup)
	watched := []*proc.Server{g.Server}
	if replicas > 0 {
		watched = nil
	}
	for range replicas {
		replica := c.replica(ctx)
		check(replica.Ready(ctx))
		watched = append(watched, replica)
	}
	var watchers []*listen.Pool
	for _, server := range watched {
		// Who subscribes to no account is told where each slot ends, and so when it is published.
		watchers = append(watchers, c.open(ctx, listen.Config{
			Sockets: 1, URL: server.StreamURL(), CheckNumbers: true, Query: func(int) url.Values { return url.Values{"mode": {"none"}} },
		}))
	}
	first, blocks := g.feed.Newest()+1, c.networkBlocks()
	slowest := latency.New()
	used := metered(func() {
		check(g.feed.Pace(ctx, networkInterval, blocks))
		for _, w := range watchers {
			if seen := shown(ctx, w, g.feed, first); seen.Quantile(0.99) > slowest.Quantile(0.99) {
				slowest = seen
			}
		}
	}, []int{g.Pid()})
	c.Record(subject, blocks, append(times(slowest), used.cores("ingester")...)...)
}

// shown waits until a subscriber was told of every block from one on, and returns how long that took from when they were due.
func shown(ctx context.Context, watcher *listen.Pool, due *feed.Feed, slot ledger.Slot) *latency.Histogram {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	seen := latency.New()
	for ; slot <= due.Newest(); slot++ {
		for watcher.Arrived(uint64(slot)).IsZero() {
			if n := watcher.Counts(); n.Connected == 0 {
				check(fmt.Errorf("a replica's stream ended before block %d: %w", slot, n.Why))
			}
			if err := wait.Sleep(ctx, time.Millisecond); err != nil {
				check(fmt.Errorf("a replica does not show block %d: %w", slot, err))
			}
		}
		seen.Record(watcher.Arrived(uint64(slot)).Sub(due.Due(slot)))
	}
	return seen
}
