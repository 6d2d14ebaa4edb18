package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"ledgerd/bench/latency"
	"ledgerd/bench/load"
)

// step is one rate that a search has tried.
type step struct {
	Rate   float64  `json:"rate"`
	P99    float64  `json:"p99_ms"`
	Missed []string `json:"missed"` // of the objectives; none: the rate meets them
}

// outputs are where figures go.
type outputs struct {
	*output
	csv   *file
	began time.Time
}

// open opens what is written, so that a name that cannot be written to costs no measurement.
func (c *loadCommand) open(streams *streams) (o *outputs, err error) {
	o = &outputs{began: time.Now()}
	if o.output, err = openOutput(streams, c.JSON, c.CSV); err != nil {
		return nil, err
	}
	if o.csv, err = create(streams, c.CSV); err != nil {
		return nil, err
	}
	_, err = fmt.Fprintln(o.csv, "second,rate,responses,ok,failed,gone,p50_ms,p99_ms,max_ms,bytes")
	return o, err
}

func (o *outputs) close() error { return errors.Join(o.output.close(), o.csv.close()) }

// second writes what came of the requests since the last time.
func (o *outputs) second(n *load.Counts, rate float64) error {
	s := n.Latency.Summary()
	_, err := fmt.Fprintf(o.csv, "%.3f,%g,%d,%d,%d,%d,%.3f,%.3f,%.3f,%d\n", time.Since(o.began).Seconds(), rate, n.Answered(), n.OK(), n.Failed(), n.Gone,
		s.P50, s.P99, s.Max, n.Bytes)
	return err
}

// measure warms up, and measures at the rate that was asked for, or searches for it.
func (c *loadCommand) measure(ctx context.Context, out *outputs, l *load.Load) (err error) {
	defer out.show("")
	out.show("warming up")
	warmup := c.pace
	warmup.Length, warmup.Ramp, warmup.Requests = c.warmup, 0, 0
	if before := l.Phase(ctx, warmup); before.Statuses[http.StatusTooManyRequests] > 0 && !c.IgnoreLimits {
		c.counts = before
		return nil
	}
	if c.Rate != search {
		c.counts, err = c.phase(ctx, out, l)
		return err
	}
	best, err := load.Search(c.pace.Rate, func(rate float64) (bool, error) {
		c.pace.Rate = rate
		n, err := c.phase(ctx, out, l)
		s := step{rate, n.Latency.Summary().P99, c.slo.Missed(n)}
		if ctx.Err() != nil { // it was cut short, and says nothing of the rate
			c.counts = cmp.Or(c.counts, n)
			return false, cmp.Or(err, ctx.Err())
		}
		c.steps = append(c.steps, s)
		if c.counts == nil || s.Missed == nil {
			c.counts = n
		}
		return s.Missed == nil, err
	})
	switch {
	case best > 0:
		c.pace.Rate, c.why = best, fmt.Sprintf("the highest of %d rates that meets %s", len(c.steps), c.SLO)
	case len(c.steps) > 0:
		c.pace.Rate, c.why = c.steps[0].Rate, "no rate meets "+c.SLO
	}
	if errors.Is(err, context.Canceled) {
		c.why += "; the search was interrupted"
		return nil
	}
	return err
}

// phase measures once. Each second it takes what was counted, for the line of progress and the files.
func (c *loadCommand) phase(ctx context.Context, out *outputs, l *load.Load) (*load.Counts, error) {
	all, begun := load.NewCounts(), time.Now()
	var err error
	take := func(part *load.Counts) {
		all.Merge(part)
		err = errors.Join(err, out.second(part, c.pace.Rate))
		out.show(fmt.Sprintf("%.0f of %.0f s: %d responses/s, p99 %.3f ms, %d failed", time.Since(begun).Seconds(), c.pace.Length.Seconds(), part.Answered(),
			latency.Milliseconds(part.Latency.Quantile(0.99)), all.Failed()))
	}
	stop := everySecond(func() { take(l.Take()) })
	last := l.Phase(ctx, c.pace)
	stop()
	take(last)
	return all, err
}

// judge returns an error if a response is wrong, or an objective is missed.
func (c *loadCommand) judge() error {
	missed := c.slo.Missed(c.counts)
	for what, n := range c.counts.Wrong {
		missed = append(missed, fmt.Sprintf("%d responses are wrong: %s", n, what))
	}
	if len(missed) > 0 {
		return errors.New(strings.Join(missed, "; "))
	}
	return nil
}
