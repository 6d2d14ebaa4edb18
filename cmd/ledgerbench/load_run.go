package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"ledgerd/bench/latency"
	"ledgerd/bench/load"
)

// loadSettings are how it was asked.
type loadSettings struct {
	URL          string   `json:"url"`
	Rate         float64  `json:"rate"` // 0: closed loop
	RateFrom     string   `json:"rate_from"`
	Connections  int      `json:"connections"`
	DurationS    float64  `json:"duration_s"`
	WarmupS      float64  `json:"warmup_s"`
	Mix          string   `json:"mix,omitempty"`
	Paths        []string `json:"paths,omitempty"`
	MinSlot      uint64   `json:"min_slot,omitempty"`
	IgnoreLimits bool     `json:"ignore_limits"`
	Limit        int      `json:"limit"` // requests in the node's window; 0: any number
}

// loadRun is one run of a load.
type loadRun struct {
	*loadCommand
	settings loadSettings
	counts   *load.Counts
}

// measure warms up and measures. Once a second it takes what was counted, for the line of progress and
// for the log of latencies.
func (r *loadRun) measure(ctx context.Context, progress io.Writer, l *load.Load) (err error) {
	r.counts = load.NewCounts()
	add := func(*latency.Histogram, time.Time, time.Time) error { return nil }
	if r.HDR != "" {
		file, failed := os.Create(r.HDR)
		if failed != nil {
			return &usageError{failed}
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		log, failed := latency.NewLog(file, time.Now())
		if failed != nil {
			return failed
		}
		add = log.Add
	}
	line := newStatusLine(progress)
	defer line.clear()
	line.show("warming up")
	warmup, err := l.Phase(ctx, r.Warmup)
	if err != nil || warmup.RetryAfter != "" && !r.IgnoreLimits {
		r.counts = warmup
		return err
	}
	last := make(chan *load.Counts)
	failed := make(chan error, 1)
	go func() {
		counts, err := l.Phase(ctx, r.Duration)
		failed <- err
		last <- counts
	}()
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	begun := time.Now()
	for from := begun; ; {
		var part *load.Counts
		over := false
		select {
		case <-ticks.C:
			part = l.Take()
		case err = <-failed:
			part, over = <-last, true
		}
		now := time.Now()
		r.counts.Merge(part)
		err = errors.Join(err, add(part.Latency, from, now))
		if from = now; over || err != nil {
			return err
		}
		line.show(fmt.Sprintf("%.0f s: %d responses/s, p99 %.3f ms, %d failed", now.Sub(begun).Seconds(), part.Answered(),
			latency.Milliseconds(part.Latency.Quantile(0.99)), r.counts.Failed()))
	}
}

// loadReport is what --json writes.
type loadReport struct {
	Requests struct {
		Due    int `json:"due"`
		Sent   int `json:"sent"`
		OK     int `json:"ok"`
		Failed int `json:"failed"`
		Unsent int `json:"unsent"`
	} `json:"requests"`
	Latency  latency.Summary `json:"latency_ms"`
	Statuses map[string]int  `json:"statuses"`
	Errors   map[string]int  `json:"errors"`
	Bytes    int64           `json:"bytes"`
	TookS    float64         `json:"took_s"`
	Settings loadSettings    `json:"settings"`
}

// report writes what came of it for people, and for programs if asked.
func (r *loadRun) report(out io.Writer) error {
	c := r.counts
	all := loadReport{
		Latency: c.Latency.Summary(), Statuses: map[string]int{}, Errors: c.Errors,
		Bytes: c.Bytes, TookS: c.Took.Seconds(), Settings: r.settings,
	}
	all.Requests.Due, all.Requests.Sent, all.Requests.OK, all.Requests.Failed, all.Requests.Unsent = c.Due(), c.Sent(), c.OK(), c.Failed(), c.Unsent
	for status, n := range c.Statuses {
		if n > 0 {
			all.Statuses[strconv.Itoa(status)] = n
		}
	}
	err := r.write(out, &all)
	if r.JSON == "" {
		return err
	}
	return errors.Join(err, writeFile(r.JSON, func(w io.Writer) error {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(&all)
	}))
}

func (r *loadRun) write(out io.Writer, all *loadReport) error {
	c, s := r.counts, &r.settings
	rate := "as many requests as are answered"
	if s.Rate > 0 {
		rate = fmt.Sprintf("%.6g requests/s", s.Rate)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s (%s) over %d connections, %.3g s\n\n", s.URL, rate, s.RateFrom, s.Connections, all.TookS)
	fmt.Fprintf(&b, "requests  %d due, %d sent, %d ok, %d failed, %d unsent; %.1f responses/s\n", c.Due(), c.Sent(), c.OK(), c.Failed(), c.Unsent, c.PerSecond())
	fmt.Fprintf(&b, "statuses ")
	for status, n := range c.Statuses {
		if n > 0 {
			fmt.Fprintf(&b, " %d: %d", status, n)
		}
	}
	fmt.Fprintf(&b, "\nbytes     %d, %.2f MB/s\n", c.Bytes, float64(c.Bytes)/1e6/max(all.TookS, 1e-9))
	for _, kind := range slices.Sorted(maps.Keys(c.Errors)) {
		fmt.Fprintf(&b, "failed    %d: %s\n", c.Errors[kind], kind)
	}
	if c.Answered() > 0 {
		fmt.Fprintf(&b, "\nlatency of responses in ms, from when a request was due\n")
		err := errors.Join(all.Latency.WriteTable(&b), c.Latency.WriteBars(&b))
		if err != nil {
			return err
		}
	}
	if c.Unsent > 0 {
		fmt.Fprintf(&b, "\n%d requests were due when every connection was busy, and were never sent: the server, or %d connections, cannot keep up with this rate.\n", c.Unsent, s.Connections)
	}
	if refused := c.Statuses[http.StatusTooManyRequests]; refused > 0 {
		fmt.Fprintf(&b, "\nThe node refused %d requests with 429, and asks to retry after %s s.\n", refused, c.RetryAfter)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// statusLine is a line on a terminal that changes. Elsewhere nothing is written.
type statusLine struct{ terminal io.Writer }

func newStatusLine(out io.Writer) *statusLine {
	if file, ok := out.(*os.File); ok && os.Getenv("TERM") != "dumb" {
		if info, err := file.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return &statusLine{out}
		}
	}
	return &statusLine{io.Discard}
}

// show replaces the line.
func (l *statusLine) show(text string) { _, _ = io.WriteString(l.terminal, "\r\x1b[K"+text) }

// clear removes the line.
func (l *statusLine) clear() { l.show("") }
