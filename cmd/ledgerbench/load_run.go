package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"ledgerd/bench/load"
)

// step is one rate that a search has tried.
type step struct {
	Rate   float64  `json:"rate"`
	P99    float64  `json:"p99_ms"`
	Missed []string `json:"missed"` // of the objectives; none: the rate meets them
}

// measure warms up, and measures at the rate that was asked for, or searches for it.
func (c *loadCommand) measure(ctx context.Context, out *output, l *load.Load) (err error) {
	if _, err := fmt.Fprintln(out.csv, "second,rate,responses,ok,failed,gone,p50_ms,p99_ms,max_ms,bytes"); err != nil {
		return err
	}
	defer out.show("")
	out.show("warming up")
	began := time.Now()
	warmup := c.pace
	warmup.Length, warmup.Ramp, warmup.Requests = c.warmup, 0, 0
	if before := l.Phase(ctx, warmup); before.Statuses[http.StatusTooManyRequests] > 0 && !c.IgnoreLimits {
		c.counts = before
		return nil
	}
	if ctx.Err() != nil {
		return errors.New("interrupted while warming up: nothing was measured")
	}
	if c.Rate != search {
		c.counts, err = c.phase(ctx, out, l, began)
		return err
	}
	best, err := load.Search(c.pace.Rate, func(rate float64) (bool, error) {
		c.pace.Rate = rate
		n, err := c.phase(ctx, out, l, began)
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

// phase measures once. Each second it takes what was counted, for the line of progress and a line of the file, whose seconds count from when all began.
func (c *loadCommand) phase(ctx context.Context, out *output, l *load.Load, began time.Time) (*load.Counts, error) {
	all, begun := load.NewCounts(), time.Now()
	var err error
	take := func(part *load.Counts) {
		all.Merge(part)
		s := part.Latency.Summary()
		_, failed := fmt.Fprintf(out.csv, "%.3f,%g,%d,%d,%d,%d,%.3f,%.3f,%.3f,%d\n", time.Since(began).Seconds(), c.pace.Rate, part.Answered(), part.OK(),
			part.Failed(), part.Gone, s.P50, s.P99, s.Max, part.Bytes)
		err = errors.Join(err, failed)
		out.show(fmt.Sprintf("%.0f of %.0f s: %d responses/s, p99 %.3f ms, %d failed", time.Since(begun).Seconds(), c.pace.Length.Seconds(), part.Answered(),
			s.P99, all.Failed()))
	}
	stop := everySecond(func() {
		if time.Since(begun) < c.pace.Length { // the rest is the last line
			take(l.Take())
		}
	})
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
