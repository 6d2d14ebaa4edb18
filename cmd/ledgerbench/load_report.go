package main

import (
	"math"
	"strconv"

	"ledgerd/bench/load"
)

// loaded is what load.txt.tmpl tells people of a load.
type loaded struct {
	*load.Counts
	Steps       []step
	Asked       string
	Rate, Why   string
	Connections int
	Seconds     float64
	Megabytes   float64 // a second
}

// report writes what came of it for people, and for programs if asked.
func (c *loadCommand) report(out *output) error {
	n, seconds := c.counts, max(c.counts.Took.Seconds(), 1e-9)
	rate := "as many requests as are answered"
	if c.pace.Rate > 0 {
		rate = strconv.FormatFloat(math.Round(10*c.pace.Rate)/10, 'f', -1, 64) + " requests/s"
	}
	text := &loaded{n, c.steps, c.Asked(c.URL), rate, c.why, c.Connections, seconds, float64(n.Bytes) / 1e6 / seconds}
	return out.deliver("load.txt.tmpl", text, map[string]any{
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
			"warmup_s": c.warmup.Seconds(), "ramp_s": c.Ramp.Seconds(), "arrivals": c.Arrivals, "slo": c.SLO, "verify": c.Verify, "http2": c.HTTP2,
			"paths": c.paths, "rpc": c.RPC, "ignore_limits": c.IgnoreLimits, "limit": c.node.Budget().Limit,
		}),
	})
}
