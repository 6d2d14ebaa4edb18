package main

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"ledgerd/bench/latency"
)

// report writes what came of it for people, and for programs if asked.
func (c *loadCommand) report(out *outputs) error {
	n := c.counts
	return out.deliver(c.text(), map[string]any{
		"requests":   map[string]int{"due": n.Due(), "sent": n.Sent(), "ok": n.OK(), "failed": n.Failed(), "gone": n.Gone, "unsent": n.Unsent},
		"latency_ms": n.Latency.Summary(),
		"statuses":   n.Statuses,
		"errors":     n.Errors,
		"wrong":      n.Wrong,
		"bytes":      n.Bytes,
		"took_s":     n.Took.Seconds(),
		"missed":     c.slo.Missed(n),
		"search":     c.steps,
		"settings": c.settings(map[string]any{
			"rate": c.pace.Rate, "rate_from": c.why, "connections": c.Connections, "duration_s": c.pace.Length.Seconds(),
			"warmup_s": c.warmup.Seconds(), "ramp_s": c.Ramp.Seconds(), "arrivals": c.Arrivals, "slo": c.SLO, "verify": c.Verify,
			"mix": c.Mix, "paths": c.paths, "rpc": c.RPC, "min_slot": c.MinSlot, "ignore_limits": c.IgnoreLimits, "limit": c.node.Budget().Limit,
		}),
	})
}

// text returns the figures for people.
func (c *loadCommand) text() string {
	n, took := c.counts, max(c.counts.Took.Seconds(), 1e-9)
	rate := "as many requests as are answered"
	if c.pace.Rate > 0 {
		rate = strconv.FormatFloat(math.Round(10*c.pace.Rate)/10, 'f', -1, 64) + " requests/s"
	}
	var b strings.Builder
	for _, s := range c.steps {
		fmt.Fprintf(&b, "%8.0f requests/s: p99 %.3f ms; %s\n", s.Rate, s.P99, strings.Join(append(s.Missed, "all is met")[:max(1, len(s.Missed))], "; "))
	}
	fmt.Fprintf(&b, "%s: %s (%s) over %d connections, %.3g s\n\n", c.Asked(c.URL), rate, c.why, c.Connections, took)
	fmt.Fprintf(&b, "requests  %d due, %d sent, %d ok, %d failed, %d unsent; %.1f responses/s\n", n.Due(), n.Sent(), n.OK(), n.Failed(), n.Unsent, n.PerSecond())
	fmt.Fprintf(&b, "statuses ")
	for _, status := range slices.Sorted(maps.Keys(n.Statuses)) {
		fmt.Fprintf(&b, " %d: %d", status, n.Statuses[status])
	}
	fmt.Fprintf(&b, "\nbytes     %d, %.2f MB/s\n", n.Bytes, float64(n.Bytes)/1e6/took)
	if n.Gone > 0 {
		fmt.Fprintf(&b, "gone      %d: 404 of what the node had told of before, such as accounts that closed meanwhile\n", n.Gone)
	}
	for _, failed := range []struct {
		head  string
		kinds map[string]int
	}{{"failed", n.Errors}, {"wrong", n.Wrong}} {
		for _, kind := range slices.Sorted(maps.Keys(failed.kinds)) {
			fmt.Fprintf(&b, "%-9s %d: %s\n", failed.head, failed.kinds[kind], kind)
		}
	}
	if n.Answered() > 0 {
		fmt.Fprintf(&b, "\nlatency of responses in ms, from when a request was due\n%s\n%s\n", latency.Columns, n.Latency.Summary())
	}
	if n.Unsent > 0 {
		fmt.Fprintf(&b, "\n%d requests were due when every connection was busy, and were never sent: the server, or %d connections, cannot keep up with this rate.\n", n.Unsent, c.Connections)
	}
	if refused := n.Statuses[http.StatusTooManyRequests]; refused > 0 {
		when := ""
		if n.RetryAfter != "" {
			when = ", and asks to retry after " + n.RetryAfter + " s"
		}
		fmt.Fprintf(&b, "\nThe node refused %d requests with 429%s.\n", refused, when)
	}
	return b.String()
}
