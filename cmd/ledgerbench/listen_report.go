package main

import (
	"time"

	"ledgerd/bench/latency"
	"ledgerd/bench/listen"
)

// slowConsumer is the close code of a subscriber that does not read fast enough.
const slowConsumer = 4008

// listened is what a pool received. listen.txt.tmpl tells people of it.
type listened struct {
	*listenCommand
	listen.Counts
	Took      time.Duration
	PerSecond map[string]float64
	Rows      []latencyRow
	Checked   bool // all numbers come, so that what is missing or twice is known
}

// latencyRow is one line of the table of latencies.
type latencyRow struct {
	What, name string // for people, and in JSON
	*latency.Histogram
}

// listened returns what was received: all of it, and what came since it was counted before.
func (c *listenCommand) listened(pool *listen.Pool, before listen.Counts, took time.Duration, published *latency.Histogram) *listened {
	l := &listened{listenCommand: c, Counts: pool.Counts(), Took: took}
	l.Checked = c.Commitment == "processed" && c.Pubkeys+c.Programs+c.Wallets == ""
	per := func(all, before int64) float64 { return float64(all-before) / max(took.Seconds(), 1e-9) }
	l.PerSecond = map[string]float64{
		"updates": per(l.Updates, before.Updates), "frames": per(l.Frames, before.Frames), "bytes": per(l.Bytes, before.Bytes),
	}
	l.add("publication to first socket", "publication", published)   // of ends of slots
	l.add("first socket to the others", "first_socket", pool.Skew()) // of ends of slots
	return l
}

// add adds a line to the table, unless nothing was counted.
func (l *listened) add(what, name string, h *latency.Histogram) {
	if h.Count() > 0 {
		l.Rows = append(l.Rows, latencyRow{what, name, h})
	}
}

// json returns what --json writes.
func (l *listened) json() any {
	latencies := make(map[string]latency.Summary)
	for _, row := range l.Rows {
		latencies[row.name] = row.Summary()
	}
	updates := map[string]int64{"received": l.Updates}
	if l.Checked {
		updates["missing"], updates["twice"], updates["conflated"] = l.Missing, l.Twice, l.Conflated
	}
	why := ""
	if l.Why != nil {
		why = l.Why.Error()
	}
	return map[string]any{
		"updates":    updates,
		"frames":     l.Frames,
		"bytes":      l.Bytes,
		"per_second": l.PerSecond,
		"latency_ms": latencies,
		"sockets":    map[string]int{"asked": l.Sockets, "connected": l.Connected},
		// passed_over are the numbers that the server said are lost; they do not count as missing.
		"resumes":              map[string]int64{"resumed": l.Resumed, "resync_required": l.Resyncs, "passed_over": l.Passed},
		"slow_consumer_closes": l.SlowCloses(),
		"closes":               l.Closes,  // by code; 0: the connection broke
		"refused":              l.Refused, // upgrades, by status
		"failed":               l.Failed,  // connections that were not answered
		"why":                  why,       // the first of what was closed, refused or failed
		"took_s":               l.Took.Seconds(),
		"settings": l.settings(map[string]any{
			"sockets": l.Sockets, "throttled": l.Throttled, "throttle": l.Throttle, "overflow": l.Overflow, "tokens": l.Tokens,
			"reference": l.Reference, "ramp_s": l.Ramp.Seconds(), "pubkeys": l.Pubkeys, "programs": l.Programs, "wallets": l.Wallets,
			"commitment": l.Commitment, "duration_s": l.Duration.Seconds(),
		}),
	}
}

// Megabytes is how much came in a second.
func (l *listened) Megabytes() float64 { return l.PerSecond["bytes"] / 1e6 }

// SlowCloses is how many subscribers were closed because they did not read fast enough.
func (l *listened) SlowCloses() int64 { return l.Closes[slowConsumer] }

// NotConnected is how many tries to connect did not succeed.
func (l *listened) NotConnected() int64 {
	failed := l.Failed
	for _, count := range l.Refused {
		failed += count
	}
	return failed
}
