package promtext

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger/ledgertest"
)

// TestBucketsEndExactlyAtTheirBounds counts one duration at each bound and one a nanosecond above.
func TestBucketsEndExactlyAtTheirBounds(t *testing.T) {
	labels := []string{"1e-06", "2.5e-06", "5e-06", "7.5e-06", "1e-05", "1.5e-05", "2.5e-05", "5e-05", "0.0001", "0.00025", "0.0005", "0.001", "0.0025", "0.005",
		"0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "+Inf"}
	for i, label := range labels[:len(labels)-1] {
		var seconds float64
		_, err := fmt.Sscan(label, &seconds)
		ledgertest.Must(t, err)
		at := time.Duration(math.Round(seconds * 1e9))
		for _, above := range []time.Duration{0, 1} {
			var h Histogram
			h.Observe(at + above)
			var want, got strings.Builder
			for k, le := range labels {
				fmt.Fprintf(&want, "took_bucket{route=\"a\",le=%q} %d\n", le, min(max(k+1-i-int(above), 0), 1))
			}
			fmt.Fprintf(&want, "took_sum{route=\"a\"} %v\ntook_count{route=\"a\"} 1\n", (at + above).Seconds())
			h.Write(&got, "took", `route="a"`)
			ledgertest.Equal(t, got.String(), want.String(), "%v", at+above)
		}
	}
	var h Histogram
	h.Observe(-time.Second)
	var got strings.Builder
	h.Write(&got, "took", "")
	if !strings.HasPrefix(got.String(), "took_bucket{le=\"1e-06\"} 1\n") || !strings.HasSuffix(got.String(), "\ntook_sum 0\ntook_count 1\n") {
		t.Errorf("a negative duration and no labels:\n%s", got.String())
	}
}
