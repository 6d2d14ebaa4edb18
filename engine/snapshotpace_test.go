package engine

import (
	"runtime"
	"testing"
	"time"
)

func TestSnapshotsGiveWayWhileThereIsTime(t *testing.T) {
	for _, tt := range []struct {
		busy   float64
		behind uint64
		want   float64
	}{
		{0, 0, 0.25}, {0.2, 0, 0.15}, {0.4, 0, 0.05}, {0.5, 0, 0.05}, {1, 0, 0.05},
		{1, maxReplayBytes / 2, 0.55}, {1, maxReplayBytes, 1.05}, {0, maxReplayBytes / 4, 0.5},
	} {
		if got := paceShare(tt.busy, tt.behind); got < tt.want-1e-9 || got > tt.want+1e-9 {
			t.Errorf("with %v of the processors at work and %d bytes behind: %v of a core, want %v", tt.busy, tt.behind, got, tt.want)
		}
	}
}

func TestProcessorsAreAsBusyAsTheyWereLately(t *testing.T) {
	var p processors
	began := time.Now()
	cores := time.Duration(runtime.GOMAXPROCS(0))
	for _, step := range []struct {
		after, used time.Duration // used is of each core
		want        float64
	}{
		{0, time.Second, 1}, // nothing is known yet
		{loadedOver - 1, time.Second, 1},
		{loadedOver, time.Second + loadedOver/4, 0.25},
		{loadedOver + loadedOver/2, time.Second + loadedOver/2, 0.25}, // it is looked only now and then
		{3 * loadedOver, time.Second + loadedOver/4 + loadedOver, 0.5},
		{4 * loadedOver, time.Second + loadedOver/4 + loadedOver, 0},
	} {
		if got := p.busy(began.Add(step.after), step.used*cores); got < step.want-1e-9 || got > step.want+1e-9 {
			t.Errorf("after %v: %v, want %v", step.after, got, step.want)
		}
	}
}

func TestProcessTimeGrowsWithWork(t *testing.T) {
	before := processTime()
	for began := time.Now(); processTime() == before; {
		if time.Since(began) > time.Minute {
			t.Fatal("a minute of work did not count")
		}
	}
}
