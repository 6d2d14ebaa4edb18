package main

import (
	"context"
	"encoding/json"
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

// loadRun is one run of a load.
type loadRun struct {
	*loadCommand
	url    string
	rate   float64 // 0: closed loop
	why    string  // the rate is what it is
	limit  int     // requests in the node's window; 0: any number
	counts *load.Counts
}

// measure warms up and measures. Once a second it takes what was counted, for the line of progress and
// for the log of latencies.
func (r *loadRun) measure(ctx context.Context, progress io.Writer, l *load.Load) (err error) {
	r.counts = load.NewCounts()
	hdr := io.Discard
	if r.HDR != "" {
		file, failed := os.Create(r.HDR)
		if failed != nil {
			return &usageError{failed}
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		hdr = file
	}
	log, err := latency.NewLog(hdr, time.Now())
	if err != nil {
		return err
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
	var broken, unwritten error
	go func() {
		counts, err := l.Phase(ctx, r.Duration)
		broken = err
		last <- counts
	}()
	begun := time.Now()
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for from, over := begun, false; !over; {
		var part *load.Counts
		select {
		case <-ticks.C:
			part = l.Take()
		case part = <-last:
			over = true
		}
		now := time.Now()
		r.counts.Merge(part)
		unwritten = errors.Join(unwritten, log.Add(part.Latency, from, now))
		from = now
		line.show(fmt.Sprintf("%.0f s: %d responses/s, p99 %.3f ms, %d failed", now.Sub(begun).Seconds(), part.Answered(),
			latency.Milliseconds(part.Latency.Quantile(0.99)), r.counts.Failed()))
	}
	return errors.Join(broken, unwritten)
}

// report writes what came of it for people, and for programs if asked.
func (r *loadRun) report(out io.Writer) error {
	c := r.counts
	if err := r.write(out); err != nil || r.JSON == "" {
		return err
	}
	return writeJSON(r.JSON, map[string]any{
		"requests":   map[string]int{"due": c.Due(), "sent": c.Sent(), "ok": c.OK(), "failed": c.Failed(), "unsent": c.Unsent},
		"latency_ms": c.Latency.Summary(),
		"statuses":   c.Statuses,
		"errors":     c.Errors,
		"bytes":      c.Bytes,
		"took_s":     c.Took.Seconds(),
		"settings": map[string]any{
			"url": r.url, "rate": r.rate, "rate_from": r.why, "connections": r.Connections, "duration_s": r.Duration.Seconds(), "warmup_s": r.Warmup.Seconds(),
			"mix": r.Mix, "paths": r.Path, "min_slot": r.MinSlot, "ignore_limits": r.IgnoreLimits, "limit": r.limit,
		},
	})
}

// writeJSON writes a record to a file.
func writeJSON(path string, record any) error {
	return writeFile(path, func(w io.Writer) error {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(record)
	})
}

func (r *loadRun) write(out io.Writer) error {
	c, took := r.counts, max(r.counts.Took.Seconds(), 1e-9)
	rate := "as many requests as are answered"
	if r.rate > 0 {
		rate = strconv.FormatFloat(math.Round(10*r.rate)/10, 'f', -1, 64) + " requests/s"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s (%s) over %d connections, %.3g s\n\n", r.url, rate, r.why, r.Connections, took)
	fmt.Fprintf(&b, "requests  %d due, %d sent, %d ok, %d failed, %d unsent; %.1f responses/s\n", c.Due(), c.Sent(), c.OK(), c.Failed(), c.Unsent, c.PerSecond())
	fmt.Fprintf(&b, "statuses ")
	for _, status := range slices.Sorted(maps.Keys(c.Statuses)) {
		fmt.Fprintf(&b, " %d: %d", status, c.Statuses[status])
	}
	fmt.Fprintf(&b, "\nbytes     %d, %.2f MB/s\n", c.Bytes, float64(c.Bytes)/1e6/took)
	for _, kind := range slices.Sorted(maps.Keys(c.Errors)) {
		fmt.Fprintf(&b, "failed    %d: %s\n", c.Errors[kind], kind)
	}
	if c.Answered() > 0 {
		fmt.Fprintf(&b, "\nlatency of responses in ms, from when a request was due\n%s\n%s\n%s", latency.Columns, c.Latency.Summary(), c.Latency.Bars())
	}
	if c.Unsent > 0 {
		fmt.Fprintf(&b, "\n%d requests were due when every connection was busy, and were never sent: the server, or %d connections, cannot keep up with this rate.\n", c.Unsent, r.Connections)
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
