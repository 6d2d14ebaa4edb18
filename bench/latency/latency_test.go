package latency

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

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
