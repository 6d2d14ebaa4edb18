package latency

import (
	"fmt"
	"time"
)

// Summary is how many latencies a histogram holds, and its percentiles, all in milliseconds.
type Summary struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p99_9"`
	P9999 float64 `json:"p99_99"`
	Max   float64 `json:"max"`
	Mean  float64 `json:"mean"`
}

// Summary returns the percentiles of what was counted so far.
func (h *Histogram) Summary() Summary {
	at := func(share float64) float64 { return Milliseconds(h.Quantile(share)) }
	return Summary{h.Count(), at(0.5), at(0.9), at(0.99), at(0.999), at(0.9999), at(1), h.counts.Mean() / float64(time.Millisecond)}
}

// Milliseconds returns a duration in milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Columns is the head of a table of which each line is a summary.
var Columns = fmt.Sprintf("%9s %9s %9s %9s %9s %9s %9s %9s", "count", "p50", "p90", "p99", "p99.9", "p99.99", "max", "mean")

// String returns the percentiles in one line.
func (s Summary) String() string {
	return fmt.Sprintf("%9d %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f", s.Count, s.P50, s.P90, s.P99, s.P999, s.P9999, s.Max, s.Mean)
}
