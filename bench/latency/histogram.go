// Package latency counts how long things took, and shows what was counted.
//
// A [Histogram] is an HdrHistogram: it holds any number of latencies in a fixed amount of memory and
// merges without loss. A [Summary] is its percentiles in milliseconds.
package latency

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A histogram has a resolution of a microsecond at the lower end and three digits further up.
// Latencies above the longest are counted as the longest.
const (
	shortest = time.Microsecond
	longest  = time.Minute
	digits   = 3
)

// Histogram counts latencies, in 140 KB however many there are. One goroutine at a time may
// use it: each that measures has its own, and they are merged afterwards.
type Histogram struct {
	counts *hdrhistogram.Histogram
}

// New returns an empty histogram.
func New() *Histogram {
	return &Histogram{hdrhistogram.New(shortest.Nanoseconds(), longest.Nanoseconds(), digits)}
}

// Record counts a latency.
func (h *Histogram) Record(d time.Duration) {
	d = min(max(d, shortest), longest)
	if err := h.counts.RecordValue(d.Nanoseconds()); err != nil {
		panic(err) // the range above holds every value there is
	}
}

// Merge adds what another has counted.
func (h *Histogram) Merge(other *Histogram) {
	if dropped := h.counts.Merge(other.counts); dropped > 0 {
		panic("latency: two histograms of different range")
	}
}

// Count returns how many latencies were counted.
func (h *Histogram) Count() int64 { return h.counts.TotalCount() }

// Quantile returns the latency that a share of all stay within, such as 0.99: 0 when there
// are none, the greatest for 1.
func (h *Histogram) Quantile(share float64) time.Duration {
	return time.Duration(h.counts.ValueAtQuantile(100 * share))
}
