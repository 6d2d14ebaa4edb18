package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"ledgerd/bench/latency"
	"ledgerd/bench/load"
)

// measure warms up and measures. Once a second it takes what was counted, for the line of progress and
// for the log of latencies.
func (c *loadCommand) measure(ctx context.Context, progress io.Writer, l *load.Load) (err error) {
	c.counts = load.NewCounts()
	file, err := os.Create(cmp.Or(c.HDR, os.DevNull))
	if err != nil {
		return &usageError{err}
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	log, err := latency.NewLog(file, time.Now())
	if err != nil {
		return err
	}
	show := statusLine(progress)
	defer show("")
	show("warming up")
	if warmup := l.Phase(ctx, c.Warmup); warmup.RetryAfter != "" && !c.IgnoreLimits {
		c.counts = warmup
		return nil
	}
	begun := time.Now()
	from := begun
	take := func(part *load.Counts) {
		now := time.Now()
		c.counts.Merge(part)
		err = cmp.Or(err, log.Add(part.Latency, from, now))
		from = now
		show(fmt.Sprintf("%.0f of %.0f s: %d responses/s, p99 %.3f ms, %d failed", now.Sub(begun).Seconds(), c.Duration.Seconds(), part.Answered(),
			latency.Milliseconds(part.Latency.Quantile(0.99)), c.counts.Failed()))
	}
	stop := everySecond(func() { take(l.Take()) })
	last := l.Phase(ctx, c.Duration)
	stop()
	take(last)
	return err
}

// report writes what came of it for people, and for programs if asked.
func (c *loadCommand) report(out io.Writer) error {
	n := c.counts
	return deliver(out, c.text(), c.JSON, map[string]any{
		"requests":   map[string]int{"due": n.Due(), "sent": n.Sent(), "ok": n.OK(), "failed": n.Failed(), "unsent": n.Unsent},
		"latency_ms": n.Latency.Summary(),
		"statuses":   n.Statuses,
		"errors":     n.Errors,
		"bytes":      n.Bytes,
		"took_s":     n.Took.Seconds(),
		"settings": map[string]any{
			"url": c.node.URL.String(), "rate": c.rate, "rate_from": c.why, "connections": c.Connections, "duration_s": c.Duration.Seconds(),
			"warmup_s": c.Warmup.Seconds(), "mix": c.Mix, "paths": c.Path, "min_slot": c.MinSlot, "ignore_limits": c.IgnoreLimits, "limit": c.node.Budget().Limit,
		},
	})
}

// text returns the figures for people.
func (c *loadCommand) text() string {
	n, took := c.counts, max(c.counts.Took.Seconds(), 1e-9)
	rate := "as many requests as are answered"
	if c.rate > 0 {
		rate = strconv.FormatFloat(math.Round(10*c.rate)/10, 'f', -1, 64) + " requests/s"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s (%s) over %d connections, %.3g s\n\n", c.node.URL.String(), rate, c.why, c.Connections, took)
	fmt.Fprintf(&b, "requests  %d due, %d sent, %d ok, %d failed, %d unsent; %.1f responses/s\n", n.Due(), n.Sent(), n.OK(), n.Failed(), n.Unsent, n.PerSecond())
	fmt.Fprintf(&b, "statuses ")
	for _, status := range slices.Sorted(maps.Keys(n.Statuses)) {
		fmt.Fprintf(&b, " %d: %d", status, n.Statuses[status])
	}
	fmt.Fprintf(&b, "\nbytes     %d, %.2f MB/s\n", n.Bytes, float64(n.Bytes)/1e6/took)
	for _, kind := range slices.Sorted(maps.Keys(n.Errors)) {
		fmt.Fprintf(&b, "failed    %d: %s\n", n.Errors[kind], kind)
	}
	if n.Answered() > 0 {
		fmt.Fprintf(&b, "\nlatency of responses in ms, from when a request was due\n%s\n%s\n%s",
			latency.Columns, n.Latency.Summary(), n.Latency.Bars())
	}
	if n.Unsent > 0 {
		fmt.Fprintf(&b, "\n%d requests were due when every connection was busy, and were never sent: the server, or %d connections, cannot keep up with this rate.\n", n.Unsent, c.Connections)
	}
	if refused := n.Statuses[http.StatusTooManyRequests]; refused > 0 {
		fmt.Fprintf(&b, "\nThe node refused %d requests with 429, and asks to retry after %s s.\n", refused, n.RetryAfter)
	}
	return b.String()
}
