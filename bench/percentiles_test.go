package bench

import (
	"testing"
	"time"
)

func TestPercentilesAreOfAllRounds(t *testing.T) {
	var row Row
	for round := range 2 {
		h := NewHistogram()
		for i := range 500 {
			h.Record(time.Duration(500*round+i+1) * time.Millisecond)
		}
		row.AddPercentiles("answer", h)
	}
	row.AddPercentiles("nothing", NewHistogram())
	if len(row.Percentiles) != 2 || len(row.Percentiles[1].Points) != 0 {
		t.Fatalf("series: %+v", row.Percentiles)
	}
	points := row.Percentiles[0].Points
	if last := points[len(points)-1]; last.Share != 1 || last.Milliseconds < 999 || last.Milliseconds > 1001 {
		t.Errorf("the greatest is %+v", last)
	}
	if len(points) != 3*pointsPerDecade+1 { // 1,000 latencies tell three nines apart
		t.Errorf("%d points: %+v", len(points), points)
	}
	for i, p := range points {
		if want := 1000 * p.Share; p.Milliseconds < want-2 || p.Milliseconds > want+2 {
			t.Errorf("point %d: %v of 1 to 1000 ms are within %v ms", i, p.Share, p.Milliseconds)
		}
	}
}
