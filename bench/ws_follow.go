package bench

import (
	"context"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/latency"
	"ledgerd/bench/listen"
	"ledgerd/bench/report"
)

const (
	followSubscribers = 100
	followPings       = 100 * time.Millisecond // apart
)

// runFollow has subscribers of extended frames, who check the numbers of what they receive, while another connection asks time
// and again whether the server is there.
func runFollow(ctx context.Context, r *Run) error {
	updates, count := r.Scaled(networkUpdates), r.Scaled(followSubscribers)
	g, err := startRig(ctx, r, feed.Config{Accounts: max(r.Scaled(networkAccounts), updates), Updates: updates})
	if err != nil {
		return err
	}
	defer g.Kill()
	pinger, err := listen.Dial(ctx, g.StreamURL()+"?mode=none", listen.Options{})
	if err != nil {
		return err
	}
	defer pinger.Close()
	err = g.whileWriting(ctx, networkInterval, func() error {
		return turns(r, []string{"ledgerd"}, func(subject string) error {
			pool, err := g.subscribe(ctx, listen.Config{Sockets: count, CheckNumbers: true})
			if err != nil {
				return err
			}
			defer pool.Close()
			pings := latency.New()
			used, err := metered(g.Pid(), func() error { return ping(ctx, pinger, r.Duration, pings) })
			if err != nil {
				return err
			}
			n := pool.Counts()
			cut := int64(count - n.Connected)
			figures := []report.Figure{
				{Unit: "missing-or-twice-or-cut", Value: float64(n.Missing + n.Twice + cut)},
				{Unit: "frames/s", Value: float64(n.Frames) / used.took.Seconds()},
			}
			figures = append(append(figures, times("skew-", pool.Skew())...), times("ping-", pings)...)
			return r.Record(subject, int(n.Updates), append(figures, used.cores()...)...)
		})
	})
	if err != nil {
		return err
	}
	if err := r.Note("skew is the time from when the first subscriber receives the end of a block to when another does"); err != nil {
		return err
	}
	return g.Stop()
}

// ping asks time and again for a while, as one who subscribes to nothing, and records how soon the answers come.
func ping(ctx context.Context, c *listen.Conn, duration time.Duration, took *latency.Histogram) error {
	for until := time.Now().Add(duration); time.Now().Before(until); {
		began := time.Now()
		if err := c.NetConn().SetReadDeadline(began.Add(patience)); err != nil {
			return err
		}
		if err := c.WriteText([]byte(`{"type":"ping","id":1}`)); err != nil {
			return err
		}
		if _, err := c.Next(); err != nil {
			return err
		}
		took.Record(time.Since(began))
		if err := rest(ctx, followPings); err != nil {
			return err
		}
	}
	return nil
}
