package bench

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"ledgerd/bench/dial"
	"ledgerd/bench/feed"
	"ledgerd/bench/latency"
	"ledgerd/bench/listen"
	"ledgerd/bench/report"
)

// literal returns the frame of an update of an account. Those of all accounts are as long.
func literal(index int) []byte {
	return fmt.Appendf(nil, `{"type":"account_update","pubkey":"%s","lamports":%d,"timestamp":"%s"}`,
		feed.Key(index), feed.FirstSlot, time.Now().UTC().Format(time.RFC3339))
}

// literalBytes is how long it is with its header.
var literalBytes = 4 + len(literal(0))

// open connects subscribers, from eight addresses, that go with the measurement.
func (r *Run) open(ctx context.Context, c listen.Config) *listen.Pool {
	c.Dial.From = dial.Loopback(8)
	pool := got(listen.OpenAll(ctx, c))
	r.atEnd(func() error { pool.Close(); return nil })
	return pool
}

// times returns the percentiles of latencies.
func times(h *latency.Histogram) []report.Figure {
	s := h.Summary()
	return []report.Figure{{Unit: "p50-ms", Value: s.P50}, {Unit: "p99-ms", Value: s.P99}, {Unit: "max-ms", Value: s.Max}}
}

// named returns the query of a subscriber of some accounts.
func named(indexes []int) url.Values {
	keys := make([]string, len(indexes))
	for k, index := range indexes {
		keys[k] = feed.Key(index).String()
	}
	return url.Values{"pubkeys": {strings.Join(keys, ",")}}
}
