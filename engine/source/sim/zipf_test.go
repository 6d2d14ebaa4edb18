package sim

import (
	"math"
	"testing"
)

func TestZipfDrawsRanksInProportion(t *testing.T) {
	const n, draws = 1000, 200_000
	z := newZipf(n, 12_000)
	var r random
	r.start(1, 1)
	seen := make([]int, n)
	for range draws {
		seen[z.draw(&r)]++
	}
	total := 0.0
	for i := range n {
		total += math.Pow(float64(i+1), -1.2)
	}
	for _, rank := range []int{0, 1, 2, 9, 99, 999} {
		want := draws * math.Pow(float64(rank+1), -1.2) / total
		if got := float64(seen[rank]); math.Abs(got-want) > 6*math.Sqrt(want) {
			t.Errorf("rank %d drawn %v times, want about %v", rank, got, want)
		}
	}
	if z := newZipf(20, 100_000); z[19] <= z[18] {
		t.Errorf("the last of the cumulative weights %v is not above the one before", z)
	}
	// The largest table at the smallest exponent must not overflow: its sum is below
	// the harmonic number of its size, about 18, times the largest weight.
	if 18<<(unitBits-weightShift)+20*million > math.MaxInt64 {
		t.Error("weights can overflow")
	}
}
