package bench

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/latency"
	"ledgerd/bench/listen"
	"ledgerd/bench/report"
	"ledgerd/engine/ledger"
)

var streamScenarios = []Scenario{
	{"firehose", "How many frames 500 subscribers of everything are handed in a second, and how that compares.", runFirehose},
	{"latency", "How long after a block was due 500 subscribers of everything, and 100, have its frames.", runLatency},
	{"follow", "Whether 100 subscribers of everything miss anything, how far apart they receive blocks, and how soon a ping returns.", runFollow},
	{"idle", "What 15,000 connections with 10 accounts each cost that never change: memory, and CPU.", runIdle},
	{"filtered", "How much 10,000 subscribers of 10 accounts each slow ingest down, at 75,000 updates a second and flat out.", runFiltered},
	{"stalled", "What 1,000 subscribers notice of one more that stops reading, and what becomes of it.", runStalled},
	{"storm", "15,000 clients connect at once: whether all get in, and what REST notices, of 2,000 that send a byte a second too.", runStorm},
}

var streamGoals = []report.Goal{
	{Scenario: "firehose", Subject: "ledgerd", Unit: "frames/s", AtLeast: 20e6},
	{Scenario: "firehose", Subject: "ledgerd", Unit: "B/s", Of: "raw", AtLeast: 0.85},
	{Scenario: "firehose", Subject: "ledgerd", Unit: "frames/s", Of: "nats", AtLeast: 5},
	{Scenario: "firehose", Subject: "ledgerd", Unit: "frames/s", Of: "hub", AtLeast: 50,
		Why: "the goal was set against a hub that wrote each message in a call of its own; this one drains its queue, as the library's example does"},
	{Scenario: "firehose", Subject: "ledgerd", Unit: "updates/s", AtLeast: 40e3},
	{Scenario: "latency", Subject: "500-subscribers", Unit: "p99-ms", AtMost: 100},
	{Scenario: "latency", Subject: "100-subscribers", Unit: "p99-ms", AtMost: 25},
	{Scenario: "follow", Subject: "ledgerd", Unit: "missing-or-twice-or-cut", AtMost: 0},
	{Scenario: "idle", Subject: "connected", Unit: "rss-KiB/conn", AtMost: 12},
	{Scenario: "filtered", Subject: "subscribers", Unit: "ingest-mean-ms", Of: "nobody", AtMost: 1.1},
	{Scenario: "filtered", Subject: "subscribers", Unit: "updates/s", Of: "nobody", AtLeast: 0.9,
		Why: "flat out there is no idle processor: what the subscribers and their sockets take, ingest has not"},
	{Scenario: "stalled", Subject: "one-stalls", Unit: "p99-ms", Of: "nobody-stalls", AtMost: 1.1},
	{Scenario: "stalled", Subject: "stalled-reader", Unit: "gone-s", AtLeast: 4.9},
	{Scenario: "stalled", Subject: "stalled-reader", Unit: "gone-s", AtMost: 5.6},
	{Scenario: "stalled", Subject: "one-stalls", Unit: "rss-MiB", Of: "nobody-stalls", AtMost: 1.1},
	{Scenario: "stalled", Subject: "stalled-reader", Unit: "left-connections", AtMost: 0},
	{Scenario: "stalled", Subject: "stalled-reader", Unit: "left-files", AtMost: 0},
	{Scenario: "stalled", Subject: "all-gone", Unit: "left-connections", AtMost: 0},
	{Scenario: "stalled", Subject: "all-gone", Unit: "left-files", AtMost: strays},
	{Scenario: "stalled", Subject: "all-gone", Unit: "left-goroutines", AtMost: strays},
	{Scenario: "storm", Subject: "rest-beside-slow", Unit: "p99-ms", Of: "rest-before", AtMost: 1.5},
	{Scenario: "storm", Subject: "rest-meanwhile", Unit: "p99-ms", Of: "rest-before", AtMost: 2,
		Why: "15,000 handshakes take both processors for over a second, of clients and server alike"},
	{Scenario: "storm", Subject: "rest-meanwhile", Unit: "not-ok", AtMost: 0},
	{Scenario: "storm", Subject: "clients", Unit: "not-let-in", AtMost: 0},
	{Scenario: "storm", Subject: "clients", Unit: "lost", AtMost: 0},
	{Scenario: "storm", Subject: "clients", Unit: "over-client-cap-not-429", AtMost: 0},
	{Scenario: "storm", Subject: "clients", Unit: "under-server-cap-not-in", AtMost: 0},
	{Scenario: "storm", Subject: "clients", Unit: "over-server-cap-not-503", AtMost: 0},
	{Scenario: "storm", Subject: "all-gone", Unit: "left-connections", AtMost: 0},
	{Scenario: "storm", Subject: "all-gone", Unit: "left-files", AtMost: strays},
	{Scenario: "storm", Subject: "all-gone", Unit: "left-goroutines", AtMost: strays},
}

// literal returns the frame of an update of an account. Those of all accounts are as long.
func literal(index int) []byte {
	return fmt.Appendf(nil, `{"type":"account_update","pubkey":"%s","lamports":%d,"timestamp":"%s"}`,
		feed.Key(index), feed.FirstSlot, time.Now().UTC().Format(time.RFC3339))
}

// literalBytes is how long it is with its header.
var literalBytes = 4 + len(literal(0))

// subscribe connects subscribers of timed literal frames, or of those in c, from eight addresses. Of everything most only
// count bytes. They go with the measurement.
func (g *rig) subscribe(ctx context.Context, r *Run, c listen.Config) (*listen.Pool, error) {
	c.URL = g.StreamURL()
	c.Local = func(i int) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, byte(1 + i%8)}) }
	c.Due = func(slot uint64) time.Time { return g.feed.Due(ledger.Slot(slot)) }
	if c.Query == nil && !c.CheckNumbers {
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

// noteSample says how subscribers of everything read.
func (r *Run) noteSample() {
	r.Note("every 100th subscriber of ledgerd, and four at least, reads frames; the others count bytes, which must be as many")
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

// everything returns how many frames a subscriber of everything must have received that came after a slot.
func (g *rig) everything(after ledger.Slot) func(int) int64 {
	frames := int64(g.feed.Newest()-after) * int64(g.feed.Config().Updates)
	return func(int) int64 { return frames }
}

// times returns the percentiles of latencies, with something in front of their units.
func times(prefix string, h *latency.Histogram) []report.Figure {
	s := h.Summary()
	return []report.Figure{
		{Unit: prefix + "p50-ms", Value: s.P50}, {Unit: prefix + "p99-ms", Value: s.P99}, {Unit: prefix + "max-ms", Value: s.Max},
	}
}

// strays are the goroutines and files that come and go with other work than sockets.
const strays = 5

// left returns what a server holds more than before.
func (s *standing) left(before standing) []report.Figure {
	more := func(metric string) float64 { return s.metrics[metric] - before.metrics[metric] }
	return []report.Figure{
		{Unit: "left-connections", Value: more(connections)},
		{Unit: "left-files", Value: float64(s.FDs - before.FDs)},
		{Unit: "left-goroutines", Value: more("go_goroutines")},
	}
}

// recordLeft waits until the server holds no more than before, but for strays, and records what it holds more. It waits long:
// the goroutines of ended connections wait for new ones for ten seconds.
func (g *rig) recordLeft(ctx context.Context, r *Run, before standing) error {
	for until := time.Now().Add(30 * time.Second); ; {
		now, err := standingOf(g.Server)
		if err != nil {
			return err
		}
		figures := now.left(before)
		most := slices.MaxFunc(figures, func(a, b report.Figure) int { return cmp.Compare(a.Value, b.Value) })
		if figures[0].Value <= 0 && most.Value <= strays || time.Now().After(until) {
			r.Record("all-gone", 1, figures...)
			return nil
		}
		if err := rest(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// named returns the query of a subscriber of some accounts.
func named(indexes []int) url.Values {
	keys := make([]string, len(indexes))
	for k, index := range indexes {
		keys[k] = feed.Key(index).String()
	}
	return url.Values{"pubkeys": {strings.Join(keys, ",")}}
}
