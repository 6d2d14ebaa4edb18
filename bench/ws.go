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

var streamScenarios = []Scenario{
	{"firehose", "How many bytes and frames 500 subscribers of everything are handed in a second.", runFirehose},
	{"filtered", "How much 10,000 subscribers of 10 accounts each slow ingest down, at 75,000 updates a second and flat out, and what memory each takes.", runFiltered},
	{"storm", "What REST notices of 2,000 clients that send a byte a second, and of 15,000 that connect at once.", runStorm},
}

var streamGoals = []report.Goal{
	{Scenario: "firehose", Subject: "ledgerd", Unit: "B/s", Of: "raw", AtLeast: 0.85,
		Why: "raw writes bytes to sockets and does nothing else; what ledgerd does besides is once for all subscribers"},
	{Scenario: "firehose", Subject: "ledgerd", Unit: "frames/s", Of: "nats", AtLeast: 5,
		Why: "a broker copies each message for each subscriber, which is why ledgerd writes to sockets by itself"},
	{Scenario: "filtered", Subject: "subscribers", Unit: "ingest-mean-ms", Of: "nobody", AtMost: 1.1,
		Why: "who subscribes must not delay a block for others by more than the machine's own noise"},
	{Scenario: "filtered", Subject: "subscribers", Unit: "updates/s", Of: "nobody", AtLeast: 0.9,
		Why:   "publishing never waits for a socket",
		Needs: "a third processor: flat out ingest uses two, and what the sockets and their readers take, it has not"},
	{Scenario: "storm", Subject: "rest-beside-slow", Unit: "p99-ms", Of: "rest-before", AtMost: 1.5,
		Why: "a connection that sends a byte a second wakes the server for microseconds"},
	{Scenario: "storm", Subject: "rest-meanwhile", Unit: "p99-ms", Of: "rest-before", AtMost: 2,
		Why:   "handshakes are to leave requests their turn",
		Needs: "clients on another machine, and a processor beside those that handshakes take: here 15,000 take both of two for over a second"},
}

// literal returns the frame of an update of an account. Those of all accounts are as long.
func literal(index int) []byte {
	return fmt.Appendf(nil, `{"type":"account_update","pubkey":"%s","lamports":%d,"timestamp":"%s"}`,
		feed.Key(index), feed.FirstSlot, time.Now().UTC().Format(time.RFC3339))
}

// literalBytes is how long it is with its header.
var literalBytes = 4 + len(literal(0))

// subscribe connects subscribers of literal frames, or of those in c, from eight addresses. Of everything most only count bytes. They go
// with the measurement.
func (g *rig) subscribe(ctx context.Context, r *Run, c listen.Config) (*listen.Pool, error) {
	c.URL = g.StreamURL()
	c.Dial.From = dial.Loopback(8)
	if c.Query == nil {
		c.FrameBytes = literalBytes
	}
	return r.open(ctx, c)
}

// open connects subscribers that go with the measurement.
func (r *Run) open(ctx context.Context, c listen.Config) (*listen.Pool, error) {
	pool, err := listen.OpenAll(ctx, c)
	if err == nil {
		r.atEnd(func(bool) error { pool.Close(); return nil })
	}
	return pool, err
}

// settle waits until every subscriber has received as many frames as it must have, and returns an error if one does not,
// or if they received more.
func settle(ctx context.Context, pool *listen.Pool, subscribers int, want func(i int) int64) error {
	if err := pool.Await(ctx, want); err != nil {
		return err
	}
	all := int64(0)
	for i := range subscribers {
		all += want(i)
	}
	if got := pool.Counts().Frames; got != all {
		return fmt.Errorf("%d subscribers have received %d frames, not %d", subscribers, got, all)
	}
	return nil
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
