package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ledgerd/bench/proc"
)

const (
	clusterFailoverLimit = 5 * time.Second
	// failoverSource shows a block often, so that what is timed is the cluster and not the ledger.
	failoverSource  = "sim:accounts=1000,tps=200,slot_time=100ms,fork_rate=0,skip_rate=0"
	writerRole      = `ledgerd_cluster_role{role="writer"}`
	standbyRole     = `ledgerd_cluster_role{role="standby"}`
	failoverTries   = 3 // a round
	failoverGlance  = 5 * time.Millisecond
	failoverSubject = "a replica, the writer killed"
	failoverFigure  = "until the next block, the longest"
)

// failovers kills the active ingester again and again.
func (c *clusterRun) failovers(ctx context.Context) (err error) {
	stop, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	c.nextLog()
	replica, err := c.replica(ctx, "--snapshot-interval", "0")
	if err != nil {
		return err
	}
	defer replica.Kill()
	var ingesters [2]*proc.Server
	for i := range ingesters {
		if ingesters[i], err = c.ingester(ctx); err != nil {
			return err
		}
		defer func() { ingesters[i].Kill() }()
	}
	if err := replica.Ready(ctx); err != nil {
		return err
	}
	for round := range c.env.Rounds {
		longest := time.Duration(0)
		for range c.env.Scaled(failoverTries) {
			took, err := c.failover(ctx, replica, &ingesters)
			if err != nil {
				return err
			}
			longest = max(longest, took)
		}
		c.result.Row(failoverSubject).Add(failoverFigure, "s", longest.Seconds())
		c.env.Say("cluster-failover round %d: at most %.2f s", round+1, longest.Seconds())
	}
	_, most := c.result.Row(failoverSubject).figure(failoverFigure).Spread()
	c.result.Goals = []Goal{{What: "seconds until a replica shows the next block, the longest", Value: most, Limit: clusterFailoverLimit.Seconds()}}
	c.result.Notes = append(c.result.Notes, "From kill -9 of the active ingester, with a standby that keeps up, to when the replica shows a block that it had not; the longest of several times a round.")
	return replica.Stop()
}

// ingester starts a node that may write the log.
func (c *clusterRun) ingester(ctx context.Context) (*proc.Server, error) {
	args := slices.Concat([]string{"--source", failoverSource}, c.log("ingest"), []string{"--snapshot-interval", "0"})
	return proc.Start(ctx, c.env.Ledgerd, args, proc.Options{Dir: c.env.Dir})
}

// failover kills the writer, waits for the next block, and starts another node in its place.
func (c *clusterRun) failover(ctx context.Context, replica *proc.Server, ingesters *[2]*proc.Server) (time.Duration, error) {
	writer := -1
	err := until(ctx, "one ingester writes and the other waits", func() bool {
		writer = -1
		standbys := 0
		for i, s := range ingesters {
			m, err := s.Metrics()
			if err != nil {
				return false
			}
			if m[writerRole] == 1 {
				writer = i
			}
			standbys += int(m[standbyRole])
		}
		return writer >= 0 && standbys == 1
	})
	if err != nil {
		return 0, err
	}
	slot := func() float64 {
		m, _ := replica.Metrics() // one that does not answer shows nothing
		return m[processedSlot]
	}
	ingesters[writer].Kill()
	killed, before := time.Now(), slot()
	err = until(ctx, "the replica shows another block", func() bool { return slot() > before })
	took := time.Since(killed)
	if err == nil {
		ingesters[writer], err = c.ingester(ctx)
	}
	return took, err
}

// until looks again and again.
func until(ctx context.Context, what string, so func() bool) error {
	for late := time.Now().Add(rigTimeout); !so(); {
		if time.Now().After(late) {
			return fmt.Errorf("it does not come about within %v that %s", rigTimeout, what)
		}
		if !pause(ctx, failoverGlance) {
			return ctx.Err()
		}
	}
	return nil
}
