package bench

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// What a histogram tells apart: a microsecond at the lower end, three digits further up.
// Longer than the longest counts as that, so that nothing is lost from the count.
const (
	shortestLatency = time.Microsecond
	longestLatency  = time.Minute
	latencyDigits   = 3
)

// Histogram counts latencies, in 140 KB however many there are. One goroutine at a time may
// use it: each that measures has its own, and they are merged afterwards.
type Histogram struct {
	counts *hdrhistogram.Histogram
}

// NewHistogram returns an empty histogram.
func NewHistogram() *Histogram {
	return &Histogram{hdrhistogram.New(shortestLatency.Nanoseconds(), longestLatency.Nanoseconds(), latencyDigits)}
}

// Record counts a latency.
func (h *Histogram) Record(d time.Duration) { h.RecordMany(d, 1) }

// RecordMany counts a latency that many had, such as all frames of one read.
func (h *Histogram) RecordMany(d time.Duration, count int) {
	d = min(max(d, 0), longestLatency)
	if err := h.counts.RecordValues(d.Nanoseconds(), int64(count)); err != nil {
		panic(err) // the range above holds every value there is
	}
}

// Merge adds what another has counted.
func (h *Histogram) Merge(other *Histogram) {
	if dropped := h.counts.Merge(other.counts); dropped > 0 {
		panic("bench: two histograms of different range")
	}
}

// Count returns how many latencies were counted.
func (h *Histogram) Count() int64 { return h.counts.TotalCount() }

// Quantile returns the latency that a share of all stay within, such as 0.99: 0 when there
// are none, the greatest for 1.
func (h *Histogram) Quantile(share float64) time.Duration {
	return time.Duration(h.counts.ValueAtQuantile(100 * share))
}
