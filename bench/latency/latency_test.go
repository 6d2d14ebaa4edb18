package latency

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"ledgerd/engine/ledger/ledgertest"
)

// Quantiles are those of the sorted latencies within the resolution, whatever the histogram they
// were first recorded in.
func TestQuantilesAreThoseOfTheSortedLatencies(t *testing.T) {
	t.Parallel()
	all, parts := New(), []*Histogram{New(), New(), New()}
	r := rand.New(rand.NewPCG(1, 1))
	var sorted []time.Duration
	for i := range 10_000 {
		d := time.Duration(r.ExpFloat64() * float64(3*time.Millisecond))
		sorted = append(sorted, d)
		parts[i%3].Record(d)
	}
	for _, p := range parts {
		all.Merge(p)
	}
	all.Record(2 * time.Hour)
	sorted = append(sorted, longest)
	slices.Sort(sorted)
	ledgertest.Equal(t, all.Count(), int64(len(sorted)), "latencies")
	for _, share := range []float64{0.5, 0.9, 0.99, 0.999, 1} {
		got, want := all.Quantile(share), sorted[int(math.Ceil(share*float64(len(sorted))))-1]
		if diff := (got - want).Abs(); diff > want/200+shortest {
			t.Errorf("quantile %v = %v, want %v", share, got, want)
		}
	}
	ledgertest.Equal(t, New().Summary(), Summary{}, "the summary of nothing")
}

func TestLogIsReadByHdrHistogram(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	begin := time.Unix(1_770_000_000, 0)
	log, err := NewLog(&file, begin)
	ledgertest.Must(t, err)
	for i := range 3 {
		h := New()
		for range i + 1 {
			h.Record(5 * time.Millisecond)
		}
		ledgertest.Must(t, log.Add(h, begin.Add(time.Duration(i)*time.Second), begin.Add(time.Duration(i+1)*time.Second)))
	}
	reader := hdrhistogram.NewHistogramLogReader(&file)
	for i := range 3 {
		h, err := reader.NextIntervalHistogram()
		if err != nil || h == nil {
			t.Fatalf("interval %d: %v, %v", i, h, err)
		}
		if h.TotalCount() != int64(i+1) || h.EndTimeMs()-h.StartTimeMs() != 1000 || (time.Duration(h.Max())-5*time.Millisecond).Abs() > 10*time.Microsecond {
			t.Errorf("interval %d: %d latencies up to %d in %d ms", i, h.TotalCount(), h.Max(), h.EndTimeMs()-h.StartTimeMs())
		}
	}
	if h, err := reader.NextIntervalHistogram(); h != nil || err != nil {
		t.Errorf("after the last: %v, %v", h, err)
	}
}
