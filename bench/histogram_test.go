package bench

import (
	"testing"
	"time"
)

func TestHistogramTellsQuantilesWithinThreeDigits(t *testing.T) {
	parts := []*Histogram{NewHistogram(), NewHistogram()}
	for i := range 10_000 {
		parts[i%2].Record(time.Duration(i+1) * 100 * time.Microsecond)
	}
	all := NewHistogram()
	all.Merge(parts[0])
	all.Merge(parts[1])
	if all.Count() != 10_000 {
		t.Errorf("%d latencies were counted, not 10000", all.Count())
	}
	for share, want := range map[float64]time.Duration{0.5: 500 * time.Millisecond, 0.99: 990 * time.Millisecond, 1: time.Second} {
		got := all.Quantile(share)
		if off := got - want; off.Abs() > want/1000 {
			t.Errorf("quantile %v is %v, want %v", share, got, want)
		}
	}
}

// What lies outside the range counts as its end: a stall of minutes must not vanish.
func TestHistogramCountsWhatIsOutsideItsRange(t *testing.T) {
	h := NewHistogram()
	h.Record(-time.Second)
	h.Record(time.Hour)
	if h.Count() != 2 || h.Quantile(0.5) >= shortestLatency {
		t.Errorf("count %d, median %v, want 2 and none", h.Count(), h.Quantile(0.5))
	}
	if most := h.Quantile(1); most < longestLatency || most > longestLatency+longestLatency/1000 {
		t.Errorf("the greatest is %v, want %v", most, longestLatency)
	}
}

func TestHistogramWithoutLatenciesAnswersZero(t *testing.T) {
	if got := NewHistogram().Quantile(0.99); got != 0 {
		t.Errorf("quantile of nothing is %v", got)
	}
}
