package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ledgerd/bench/latency"
	"ledgerd/bench/listen"
)

// slowConsumer is the close code of a subscriber that does not read fast enough.
const slowConsumer = 4008

// listened is what a pool received.
type listened struct {
	*listenCommand
	listen.Counts
	took      time.Duration
	perSecond map[string]float64
	rows      []latencyRow
	dated     bool // block times tell how late updates are
}

// latencyRow is one line of the table of latencies.
type latencyRow struct {
	what, name string // for people, and in JSON
	*latency.Histogram
}

// listened returns what was received: all of it, and what came since it was counted before.
func (c *listenCommand) listened(pool *listen.Pool, before listen.Counts, took time.Duration, published *latency.Histogram) *listened {
	l := &listened{listenCommand: c, Counts: pool.Counts(), took: took}
	per := func(all, before int64) float64 { return float64(all-before) / max(took.Seconds(), 1e-9) }
	l.perSecond = map[string]float64{
		"updates": per(l.Updates, before.Updates), "frames": per(l.Frames, before.Frames), "bytes": per(l.Bytes, before.Bytes),
	}
	l.add("block time to socket", "block_time", pool.Times()) // of updates; the time of a block has whole seconds
	l.dated = len(l.rows) > 0
	l.add("publication to first socket", "publication", published)   // of ends of slots
	l.add("first socket to the others", "first_socket", pool.Skew()) // of ends of slots
	return l
}

// add adds a line to the table, unless nothing was counted.
func (l *listened) add(what, name string, h *latency.Histogram) {
	if h.Count() > 0 {
		l.rows = append(l.rows, latencyRow{what, name, h})
	}
}

// json returns what --json writes.
func (l *listened) json() any {
	latencies := make(map[string]latency.Summary)
	for _, row := range l.rows {
		latencies[row.name] = row.Summary()
	}
	why := ""
	if l.Why != nil {
		why = l.Why.Error()
	}
	return map[string]any{
		"updates":    map[string]int64{"received": l.Updates, "missing": l.Missing, "twice": l.Twice, "conflated": l.Conflated},
		"frames":     l.Frames,
		"bytes":      l.Bytes,
		"per_second": l.perSecond,
		"latency_ms": latencies,
		"sockets":    map[string]int{"asked": l.Sockets, "connected": l.Connected},
		// passed_over are the numbers that the server said are lost; they do not count as missing.
		"resumes":              map[string]int64{"resumed": l.Resumed, "resync_required": l.Resyncs, "passed_over": l.Passed},
		"slow_consumer_closes": l.Closes[slowConsumer],
		"closes":               l.Closes,  // by code; 0: the connection broke
		"refused":              l.Refused, // upgrades, by status
		"failed":               l.Failed,  // connections that were not answered
		"why":                  why,       // the first of what was closed, refused or failed
		"took_s":               l.took.Seconds(),
		"settings": l.settings(map[string]any{
			"sockets": l.Sockets, "throttled": l.Throttled, "throttle": l.Throttle, "overflow": l.Overflow, "tokens": l.Tokens,
			"reference": l.Reference, "ramp_s": l.Ramp.Seconds(), "pubkeys": l.Pubkeys, "programs": l.Programs, "wallets": l.Wallets,
			"commitment": l.Commitment, "resume_every_s": l.ResumeEvery.Seconds(), "duration_s": l.Duration.Seconds(),
		}),
	}
}

// text returns the figures for people.
func (l *listened) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d sockets, %s, %.3g s\n\n", l.URL, l.Sockets, l.Commitment, l.took.Seconds())
	fmt.Fprintf(&b, "updates   %d received, %d missing, %d twice; %.1f/s\n", l.Updates, l.Missing, l.Twice, l.perSecond["updates"])
	if l.Conflated > 0 {
		fmt.Fprintf(&b, "conflated %d: of these numbers only the newest states came, as --overflow=conflate asks\n", l.Conflated)
	}
	fmt.Fprintf(&b, "frames    %d, %.1f/s\n", l.Frames, l.perSecond["frames"])
	fmt.Fprintf(&b, "bytes     %d, %.2f MB/s\n", l.Bytes, l.perSecond["bytes"]/1e6)
	fmt.Fprintf(&b, "sockets   %d of %d connected at the end, %d closed as slow consumers\n", l.Connected, l.Sockets, l.Closes[slowConsumer])
	if l.Resumed+l.Resyncs > 0 {
		fmt.Fprintf(&b, "resumes   %d went on where they were, %d were told to start over (%d numbers passed over)\n",
			l.Resumed, l.Resyncs, l.Passed)
	}
	for _, code := range slices.Sorted(maps.Keys(l.Closes)) {
		fmt.Fprintf(&b, "closed    %d with code %d\n", l.Closes[code], code)
	}
	fmt.Fprintf(&b, "\n%-28s%s\n", "latency in ms", latency.Columns)
	for _, row := range l.rows {
		fmt.Fprintf(&b, "%-28s%s\n", row.what, row.Summary())
	}
	switch {
	case l.dated:
		b.WriteString("Block times are whole seconds of the ledger's clock: that row is right to a second at best.\n")
	case l.Updates > 0:
		b.WriteString("Block times are more than a minute from this machine's clock: they do not tell how late updates are.\n")
	}
	failed := l.Failed
	for _, count := range l.Refused {
		failed += count
	}
	if failed > 0 {
		fmt.Fprintf(&b, "\n%d tries to connect were refused or not answered; the first thing that went wrong: %v.\n", failed, l.Why)
	}
	if l.Refused[429] > 0 {
		b.WriteString("The node limits the upgrades and sockets of one client; it can exempt this one (--rate-limit-exempt).\n")
	}
	return b.String()
}
