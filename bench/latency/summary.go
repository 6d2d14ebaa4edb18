package latency

import (
	"fmt"
	"io"
	"math"
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
	return Summary{at(0.5), at(0.9), at(0.99), at(0.999), at(0.9999), Milliseconds(h.Max()), Milliseconds(h.Mean())}
}

// Milliseconds returns a duration in milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// WriteTable writes the percentiles in two lines.
func (s Summary) WriteTable(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%9s %9s %9s %9s %9s %9s %9s\n%9.3f %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f\n",
		"p50", "p90", "p99", "p99.9", "p99.99", "max", "mean", s.P50, s.P90, s.P99, s.P999, s.P9999, s.Max, s.Mean)
	return err
}

// barWidth is how many characters the longest bar of a histogram has.
const barWidth = 40

// WriteBars writes a line for each step of a scale of 1, 2 and 5, from the least latency to the
// greatest: the upper bound in milliseconds, how many latencies are within it, and a bar.
func (h *Histogram) WriteBars(w io.Writer) error {
	counts, most := h.steps()
	for _, c := range counts {
		bar := strings.Repeat("#", int(math.Ceil(barWidth*float64(c.count)/float64(most))))
		if _, err := fmt.Fprintf(w, "%9g %12d %s\n", Milliseconds(c.bound), c.count, bar); err != nil {
			return err
		}
	}
	return nil
}

// step is the latencies up to a bound that are above the step before.
type step struct {
	bound time.Duration
	count int64
}

// steps returns the steps from the first that has latencies to the last, and the greatest count.
func (h *Histogram) steps() (steps []step, most int64) {
	bounds := []time.Duration{1 * time.Microsecond, 2 * time.Microsecond, 5 * time.Microsecond}
	for last := bounds[0]; last < 2*longest; last = bounds[len(bounds)-3] {
		for _, b := range bounds[len(bounds)-3:] {
			bounds = append(bounds, 10*b)
		}
	}
	next := 0
	current := step{bound: bounds[0]}
	for _, bar := range h.counts.Distribution() {
		if bar.Count == 0 {
			continue
		}
		for ; time.Duration(bar.From) > bounds[next]; next++ {
			if current.bound = bounds[next]; current.count > 0 || len(steps) > 0 {
				steps = append(steps, current)
			}
			current = step{}
		}
		current.count += bar.Count
		most = max(most, current.count)
	}
	if current.bound = bounds[next]; current.count > 0 {
		steps = append(steps, current)
	}
	return steps, most
}
