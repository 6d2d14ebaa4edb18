package latency

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Summary is the percentiles of a histogram, all in milliseconds.
type Summary struct {
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
	return Summary{at(0.5), at(0.9), at(0.99), at(0.999), at(0.9999), at(1), h.counts.Mean() / float64(time.Millisecond)}
}

// Milliseconds returns a duration in milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Columns is the head of a table of which each line is a summary.
var Columns = fmt.Sprintf("%9s %9s %9s %9s %9s %9s %9s", "p50", "p90", "p99", "p99.9", "p99.99", "max", "mean")

// String returns the percentiles in one line.
func (s Summary) String() string {
	return fmt.Sprintf("%9.3f %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f", s.P50, s.P90, s.P99, s.P999, s.P9999, s.Max, s.Mean)
}

// barWidth is how many characters the longest bar of a histogram has.
const barWidth = 40

// Bars returns a line for each step of a scale of 1, 2 and 5, from the least latency to the
// greatest: the upper bound in milliseconds, how many latencies are within it, and a bar.
func (h *Histogram) Bars() string {
	var b strings.Builder
	bounds, counts := h.steps()
	fmt.Fprintf(&b, "%9s %12s\n", "up to", "count")
	for i, n := range counts {
		bar := strings.Repeat("#", int(math.Ceil(barWidth*float64(n)/float64(slices.Max(counts)))))
		fmt.Fprintf(&b, "%9g %12d %s\n", Milliseconds(bounds[i]), n, bar)
	}
	return b.String()
}

// steps returns the bounds from the least latency to the greatest, and how many latencies are
// between each and the one before.
func (h *Histogram) steps() (bounds []time.Duration, counts []int64) {
	next := [...]float64{2, 2.5, 2}
	bound, count, i := time.Microsecond, int64(0), 0
	for _, bar := range h.counts.Distribution() {
		for ; bar.Count > 0 && time.Duration(bar.From) > bound; i++ {
			if count > 0 || len(counts) > 0 {
				bounds, counts = append(bounds, bound), append(counts, count)
			}
			bound, count = time.Duration(float64(bound)*next[i%3]), 0
		}
		count += bar.Count
	}
	return append(bounds, bound), append(counts, count)
}
