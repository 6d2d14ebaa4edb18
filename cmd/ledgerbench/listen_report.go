package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"ledgerd/bench/latency"
	"ledgerd/bench/listen"
)

// listenReport is what --json writes.
type listenReport struct {
	Updates struct {
		Received int64 `json:"received"` // those that came twice included
		Missing  int64 `json:"missing"`
		Twice    int64 `json:"twice"`
	} `json:"updates"`
	Frames    int64 `json:"frames"`
	Bytes     int64 `json:"bytes"`
	PerSecond struct {
		Updates float64 `json:"updates"`
		Frames  float64 `json:"frames"`
		Bytes   float64 `json:"bytes"`
	} `json:"per_second"`
	Latency struct {
		BlockTime *latency.Summary `json:"block_time"`   // of updates, from the time of their block, which has whole seconds
		Published *latency.Summary `json:"published"`    // of ends of slots, from their publication until the first socket has them
		Skew      *latency.Summary `json:"first_socket"` // of ends of slots, from the first socket until the others have them
	} `json:"latency_ms"`
	Sockets struct {
		Asked     int `json:"asked"`
		Connected int `json:"connected"` // at the end
	} `json:"sockets"`
	Resumes struct {
		Resumed int64 `json:"resumed"`
		Resyncs int64 `json:"resync_required"`
		Passed  int64 `json:"passed_over"` // numbers that the server said are lost, which do not count as missing
	} `json:"resumes"`
	SlowConsumers int64          `json:"slow_consumer_closes"`
	Closes        map[int]int64  `json:"closes"`  // by code; 0: the connection broke
	Refused       map[int]int64  `json:"refused"` // upgrades, by status
	Failed        int64          `json:"failed"`  // connections that were not answered
	Why           string         `json:"why"`     // the first of what was closed, refused or failed
	TookS         float64        `json:"took_s"`
	Settings      map[string]any `json:"settings"`

	command *listenCommand
}

// slowConsumer is the close code of a subscriber that does not read fast enough.
const slowConsumer = 4008

// report returns what a pool received: all of it, and by the second since it was counted before.
func (c *listenCommand) report(pool *listen.Pool, before listen.Counts, took time.Duration) *listenReport {
	n := pool.Counts()
	r := &listenReport{
		Frames: n.Frames, Bytes: n.Bytes, SlowConsumers: n.Closes[slowConsumer], Closes: n.Closes, Refused: n.Refused, Failed: n.Failed,
		TookS: took.Seconds(), command: c, Settings: map[string]any{
			"url": c.URL, "sockets": c.Sockets, "pubkeys": c.Pubkeys, "programs": c.Programs, "wallets": c.Wallets, "commitment": c.Commitment,
			"resume_every_s": c.ResumeEvery.Seconds(), "duration_s": c.Duration.Seconds(),
		},
	}
	r.Updates.Received, r.Updates.Missing, r.Updates.Twice = n.Updates, n.Missing, n.Twice
	per := func(all, before int64) float64 { return float64(all-before) / max(took.Seconds(), 1e-9) }
	r.PerSecond.Updates, r.PerSecond.Frames, r.PerSecond.Bytes = per(n.Updates, before.Updates), per(n.Frames, before.Frames), per(n.Bytes, before.Bytes)
	r.Latency.BlockTime, r.Latency.Skew = summary(pool.Times()), summary(pool.Skew())
	r.Sockets.Asked, r.Sockets.Connected = c.Sockets, n.Connected
	r.Resumes.Resumed, r.Resumes.Resyncs, r.Resumes.Passed = n.Resumed, n.Resyncs, n.Passed
	if n.Why != nil {
		r.Why = n.Why.Error()
	}
	return r
}

// summary returns nil for a histogram of nothing.
func summary(h *latency.Histogram) *latency.Summary {
	if h.Count() == 0 {
		return nil
	}
	s := h.Summary()
	return &s
}

// write writes the figures for people.
func (r *listenReport) write(out io.Writer) error {
	var b strings.Builder
	c := r.command
	fmt.Fprintf(&b, "%s: %d sockets, %s, %.3g s\n\n", c.URL, c.Sockets, c.Commitment, r.TookS)
	fmt.Fprintf(&b, "updates   %d received, %d missing, %d twice; %.1f/s\n", r.Updates.Received, r.Updates.Missing, r.Updates.Twice, r.PerSecond.Updates)
	fmt.Fprintf(&b, "frames    %d, %.1f/s\n", r.Frames, r.PerSecond.Frames)
	fmt.Fprintf(&b, "bytes     %d, %.2f MB/s\n", r.Bytes, r.PerSecond.Bytes/1e6)
	fmt.Fprintf(&b, "sockets   %d of %d connected at the end, %d closed as slow consumers\n", r.Sockets.Connected, r.Sockets.Asked, r.SlowConsumers)
	if r.Resumes.Resumed+r.Resumes.Resyncs > 0 {
		fmt.Fprintf(&b, "resumes   %d went on where they were, %d were told to start over (%d numbers passed over)\n", r.Resumes.Resumed, r.Resumes.Resyncs, r.Resumes.Passed)
	}
	for _, code := range slices.Sorted(maps.Keys(r.Closes)) {
		fmt.Fprintf(&b, "closed    %d with code %d\n", r.Closes[code], code)
	}
	rows := []struct {
		what string
		*latency.Summary
	}{{"block time to socket", r.Latency.BlockTime}, {"publication to first socket", r.Latency.Published}, {"first socket to others", r.Latency.Skew}}
	fmt.Fprintf(&b, "\n%-28s%9s %9s %9s %9s %9s %9s\n", "latency in ms", "p50", "p90", "p99", "p99.9", "max", "mean")
	for _, row := range rows {
		if s := row.Summary; s != nil {
			fmt.Fprintf(&b, "%-28s%9.3f %9.3f %9.3f %9.3f %9.3f %9.3f\n", row.what, s.P50, s.P90, s.P99, s.P999, s.Max, s.Mean)
		}
	}
	if r.Latency.BlockTime != nil {
		b.WriteString("Block times are whole seconds of the ledger's clock: that row is right to a second at best.\n")
	} else if r.Updates.Received > 0 {
		b.WriteString("Block times are more than a minute from this machine's clock: they do not tell how late updates are.\n")
	}
	refused := r.Failed
	for _, count := range r.Refused {
		refused += count
	}
	if refused > 0 || r.Sockets.Connected < r.Sockets.Asked {
		fmt.Fprintf(&b, "\n%d tries to connect were refused or not answered; the first thing that went wrong: %s.\n", refused, r.Why)
	}
	if r.Refused[429] > 0 {
		b.WriteString("The node limits the upgrades and sockets of one client; it can exempt this one (--rate-limit-exempt).\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}
