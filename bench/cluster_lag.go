package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/proc"
)

// lags has a busy network's blocks pass the log at the network's pace.
func (c *clusterRun) lags(ctx context.Context) (err error) {
	stop, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for round := range c.env.Rounds {
		for _, replicas := range []int{1, clusterMostReaders} {
			c.nextLog()
			if err := c.lag(ctx, replicas); err != nil {
				return fmt.Errorf("%s: %w", lagSubject(replicas), err)
			}
			row := c.result.Row(lagSubject(replicas))
			c.env.Say("cluster-lag round %d: %s show blocks within %.1f ms (p99), the ingester uses %.3f cores", round+1, lagSubject(replicas), row.last("p99"), row.last("CPU of the ingester"))
		}
	}
	for _, replicas := range []int{1, clusterMostReaders} {
		c.result.Goals = append(c.result.Goals, Goal{
			What: "ms from due to shown, p99, " + lagSubject(replicas), Value: c.result.median(lagSubject(replicas), "p99"), Limit: milliseconds(clusterLagLimit),
		})
	}
	c.result.Goals = append(c.result.Goals, Goal{
		What:  "CPU of the ingester with three replicas, of that with one",
		Value: ratio(c.result.median(lagSubject(clusterMostReaders), "CPU of the ingester"), c.result.median(lagSubject(1), "CPU of the ingester")), Limit: clusterCostLimit,
	})
	c.result.Notes = append(c.result.Notes, "From due to shown is all of it: the ingester, the log on three nats-servers, the replica, both nodes' own logs. Of several replicas the slowest counts.")
	return nil
}

func lagSubject(replicas int) string {
	if replicas == 1 {
		return "1 replica"
	}
	return fmt.Sprintf("%d replicas", replicas)
}

// lag measures one round with so many replicas.
func (c *clusterRun) lag(ctx context.Context, replicas int) error {
	updates := c.env.Scaled(networkUpdates)
	r, err := startRig(ctx, c.env, feed.Config{Accounts: max(c.env.Scaled(networkAccounts), updates), Updates: updates}, c.log("ingest")...)
	if err != nil {
		return err
	}
	defer r.Kill()
	var servers []*proc.Server
	var probes []*probe
	defer func() {
		for _, p := range probes {
			p.close()
		}
		for _, s := range servers {
			s.Kill()
		}
	}()
	for range replicas {
		s, err := c.replica(ctx, "--snapshot-interval", "0")
		if err != nil {
			return err
		}
		servers = append(servers, s)
		if err := s.Ready(ctx); err != nil {
			return err
		}
		p, err := newProbe(ctx, s.StreamURL(), r.feed)
		if err != nil {
			return err
		}
		probes = append(probes, p)
	}
	if err := r.pace(ctx, networkInterval, networkWarmup); err != nil {
		return err
	}
	before, err := r.spent()
	if err != nil {
		return err
	}
	newest := r.feed.Newest()
	for _, p := range probes {
		if err := p.await(ctx, newest); err != nil {
			return err
		}
		p.publications() // those of the warm-up
	}
	if newest, err = r.feed.Pace(ctx, networkInterval, max(1, int(c.env.Duration/networkInterval))); err != nil {
		return err
	}
	for _, p := range probes {
		if err := p.await(ctx, newest); err != nil {
			return err
		}
	}
	after, err := r.spent()
	if err != nil {
		return err
	}
	c.noteLag(lagSubject(replicas), probes, after, before)
	err = r.Stop()
	for _, s := range servers {
		err = errors.Join(err, s.Stop())
	}
	return err
}

// noteLag notes the slowest of the replicas, and what the ingester used.
func (c *clusterRun) noteLag(subject string, probes []*probe, after, before spent) {
	var slowest *Histogram
	for _, p := range probes {
		if h := p.publications(); slowest == nil || h.Quantile(0.99) > slowest.Quantile(0.99) {
			slowest = h
		}
	}
	row := c.result.Row(subject)
	addLatency(row, "", slowest)
	server, _, took := after.since(before)
	row.Add("CPU of the ingester", "cores", server.Seconds()/max(took, time.Nanosecond).Seconds())
}
