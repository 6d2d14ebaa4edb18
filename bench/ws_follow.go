package bench

import (
	"context"
	"time"

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
	r.Note("skew is the time from when the first subscriber receives the end of a block to when another does")
	g, err := startNetwork(ctx, r)
	if err != nil {
		return err
	}
	pinger, err := listen.Dial(ctx, g.StreamURL()+"?mode=none", listen.Options{})
	if err != nil {
		return err
	}
	defer pinger.Close()
	return g.whileWriting(ctx, networkInterval, func() error {
		return turns(r, []string{"ledgerd"}, func(subject string) error { return measureFollow(ctx, r, g, pinger, subject) })
	})
}

func measureFollow(ctx context.Context, r *Run, g *rig, pinger *listen.Conn, subject string) error {
	count := r.Scaled(followSubscribers)
	pool, err := g.subscribe(ctx, r, listen.Config{Sockets: count, CheckNumbers: true})
	if err != nil {
		return err
	}
	pings := latency.New()
	used, err := metered(func() error { return ping(ctx, pinger, r.Duration, pings) }, []int{g.Pid()}, loader)
	if err != nil {
		return err
	}
	n := pool.Counts()
	figures := []report.Figure{{Unit: "missing-or-twice-or-cut", Value: float64(n.Missing+n.Twice) + float64(count-n.Connected)}}
	figures = append(append(figures, times("skew-", pool.Skew())...), times("ping-", pings)...)
	r.Record(subject, int(n.Updates), append(figures, used.cores("server", "load")...)...)
	return nil
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
