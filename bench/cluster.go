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
	"ledgerd/bench/peer"
	"ledgerd/bench/proc"
	"ledgerd/bench/report"
	"ledgerd/engine/ledger"
)

var clusterScenarios = []Scenario{
	{"cluster", "What it costs that updates pass a log on three nats-servers, each of which syncs every message: updates a second, and how late a block is shown.", runCluster},
}

var clusterGoals = []report.Goal{
	{Scenario: "cluster", Subject: "replica", Unit: "updates/s", Of: "alone", AtLeast: 0.5,
		Why:   "an update is encoded, synced by servers and decoded once more than by a node alone",
		Needs: "a processor for each of the five processes, which here share two"},
	{Scenario: "cluster", Subject: "replicas=1", Unit: "p99-ms", Of: "alone", AtMost: 4,
		Why: "a node alone syncs a block once; through the log the ingester, the servers and the replica do, one after the other"},
	{Scenario: "cluster", Subject: "replicas=3", Unit: "ingester-cores", Of: "replicas=1", AtMost: 1.05,
		Why: "replicas ask the log, and not the ingester"},
}

const clusterRateBlocks = 500

// cluster is nats-servers that nodes share logs on: one for each measurement.
type cluster struct {
	*Run
	nats *proc.NATS
	logs int // so far: nodes that are started share the newest
}

// runCluster measures with three nats-servers.
func runCluster(ctx context.Context, r *Run) error {
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
	r.Note("from due to shown is all of it: the ingester, the log, the replica; of several replicas the slowest counts")
	c := &cluster{Run: r, nats: nats}
	ledger, err := writeIngest(r, networkAccounts, clusterRateBlocks, 0)
	if err != nil {
		return err
	}
	return turns(r, []func() error{
		func() error { return c.rateAlone(ctx, ledger) },
		func() error { return c.rate(ctx, ledger) },
		func() error { return c.lag(ctx, "alone", 0) },
		func() error { return c.lag(ctx, "replicas=1", 1) },
		func() error { return c.lag(ctx, "replicas=3", 3) },
	}, func(measure func() error) error {
		c.logs++
		return measure()
	})
}

// node returns the flags of a node with a role.
func (c *cluster) node(role string, flags ...string) []string {
	log := fmt.Sprintf("nats://%s/BENCH%d", strings.Join(c.nats.Addresses(), ","), c.logs)
	return append([]string{"--role", role, "--log", log, "--ops-advertise", "127.0.0.1", "--log-level", "error"}, flags...) // servers that have just begun are warned of
}

// replica starts a node that follows the log.
func (c *cluster) replica(ctx context.Context) (*proc.Server, error) {
	return c.start(ctx, "", c.node("replica", "--source", "none")...)
}

// rateAlone has a node without a log read a file as fast as it goes.
func (c *cluster) rateAlone(ctx context.Context, s *ingest) error {
	server, err := c.start(ctx, "", "--source", "file:"+s.events)
	if err != nil {
		return err
	}
	return c.recordRate(ctx, s, "alone", server)
}

// rate has an ingester read the file, and a replica follow.
func (c *cluster) rate(ctx context.Context, s *ingest) error {
	replica, err := c.replica(ctx)
	if err == nil {
		_, err = c.start(ctx, "", c.node("ingest", "--source", "file:"+s.events)...)
	}
	if err != nil {
		return err
	}
	return c.recordRate(ctx, s, "replica", replica)
}

// recordRate records how fast a server comes to show the ledger.
func (c *cluster) recordRate(ctx context.Context, s *ingest, subject string, server *proc.Server) error {
	p, err := s.watch(ctx, server, []int{server.Pid()}, c.nats.Pids())
	if err == nil {
		c.Record(subject, int(p.updates), append([]report.Figure{{Unit: "updates/s", Value: p.updates / p.seconds()}}, p.cores("server", "nats")...)...)
	}
	return err
}

// lag has a busy network's blocks pass the log at the network's pace, and records when so many replicas show them; of none, when the node
// itself does, which then has no log.
func (c *cluster) lag(ctx context.Context, subject string, replicas int) error {
	var flags []string
	if replicas > 0 {
		flags = c.node("ingest")
	}
	g, err := startNetwork(ctx, c.Run, flags...)
	if err == nil {
		err = g.pace(ctx, networkInterval, networkWarmup)
	}
	if err != nil {
		return err
	}
	watched := []*proc.Server{g.Server}
	if replicas > 0 {
		watched = nil
	}
	for range replicas {
		replica, err := c.replica(ctx)
		if err == nil {
			err = replica.Ready(ctx)
		}
		if err != nil {
			return err
		}
		watched = append(watched, replica)
	}
	var watchers []*listen.Pool
	for _, server := range watched {
		// Who subscribes to no account is told where each slot ends, and so when it is published.
		watcher, err := c.open(ctx, listen.Config{
			Sockets: 1, URL: server.StreamURL(), CheckNumbers: true, Query: func(int) url.Values { return url.Values{"mode": {"none"}} },
		})
		if err != nil {
			return err
		}
		watchers = append(watchers, watcher)
	}
	first, blocks := g.feed.Newest()+1, c.networkBlocks()
	used, err := metered(func() error { return g.feed.Pace(ctx, networkInterval, blocks) }, []int{g.Pid()})
	if err != nil {
		return err
	}
	slowest := latency.New()
	for _, w := range watchers {
		seen, err := shown(ctx, w, g.feed, first)
		if err != nil {
			return err
		}
		if seen.Quantile(0.99) > slowest.Quantile(0.99) {
			slowest = seen
		}
	}
	c.Record(subject, blocks, append(times(slowest), used.cores("ingester")...)...)
	return nil
}

// shown waits until a subscriber was told of every block from one on, and returns how long that took from when they were due.
func shown(ctx context.Context, watcher *listen.Pool, due *feed.Feed, slot ledger.Slot) (*latency.Histogram, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	seen := latency.New()
	for ; slot <= due.Newest(); slot++ {
		for watcher.Arrived(uint64(slot)).IsZero() {
			if n := watcher.Counts(); n.Connected == 0 {
				return nil, fmt.Errorf("a replica's stream ended before block %d: %w", slot, n.Why)
			}
			if err := rest(ctx, time.Millisecond); err != nil {
				return nil, fmt.Errorf("a replica does not show block %d: %w", slot, err)
			}
		}
		seen.Record(watcher.Arrived(uint64(slot)).Sub(due.Due(slot)))
	}
	return seen, nil
}
