package engine

import (
	"context"
	"runtime/debug"
	"testing"
	"time"
)

// TestHeadroomShrinksAsTheHeapGrows names heaps and what they get.
func TestHeadroomShrinksAsTheHeapGrows(t *testing.T) {
	const mega = 1 << 20
	for _, tt := range []struct {
		live, looked, roots uint64
		want                int
	}{
		{0, 0, 0, 100}, {1 * mega, 0, 0, 100}, {32 * mega, 0, 0, 100}, {64 * mega, 0, 0, 50}, {1024 * mega, 100 * mega, 0, 12},
		{4096 * mega, 0, 0, 12}, {4096 * mega, 2048 * mega, 0, 50}, {4096 * mega, 5000 * mega, 0, 100},
		{50 * mega, 50 * mega, 50 * mega, 50}, {1 * mega, 1 * mega, 63 * mega, 50},
	} {
		if got := headroom(tt.live, tt.looked, tt.roots); got != tt.want {
			t.Errorf("headroom(%d, %d, %d) = %d, want %d", tt.live, tt.looked, tt.roots, got, tt.want)
		}
	}
}

// TestLeftoversAreCollectedInQuietTimes lets time pass after a burst.
func TestLeftoversAreCollectedInQuietTimes(t *testing.T) {
	const mega = 1 << 20
	began := time.Now()
	q := quiet{since: began}
	for _, step := range []struct {
		after                    time.Duration
		allocated, live, objects uint64
		want                     bool
	}{
		{0, 500 * mega, 10 * mega, 100 * mega, false},
		{4 * time.Second, 500 * mega, 10 * mega, 100 * mega, false},
		{5 * time.Second, 500*mega + quietBytes, 10 * mega, 18 * mega, false},
		{5 * time.Second, 500*mega + quietBytes, 10 * mega, 19 * mega, true},
		{6 * time.Second, 501*mega + quietBytes, 10 * mega, 100 * mega, false}, // blocks come again
		{10 * time.Second, 501*mega + 2*quietBytes, 10 * mega, 100 * mega, false},
		{11 * time.Second, 501*mega + 3*quietBytes, 800 * mega, 899 * mega, false},
		{11 * time.Second, 501*mega + 3*quietBytes, 800 * mega, 901 * mega, true},
	} {
		if got := q.leaves(began.Add(step.after), step.allocated, step.live, step.objects); got != step.want {
			t.Errorf("after %v and %d bytes, %d live of %d: %v, want %v", step.after, step.allocated, step.live, step.objects, got, step.want)
		}
	}
}

// TestNothingIsCollectedWhileBlocksCome allocates steadily, and leaves much over, without the collector
// ever running by itself.
func TestNothingIsCollectedWhileBlocksCome(t *testing.T) {
	const mega = 1 << 20
	began := time.Now()
	q := quiet{since: began}
	for i := range uint64(60) {
		if q.leaves(began.Add(time.Duration(i)*headroomEvery), i*mega, 10*mega, (10+i)*mega) {
			t.Fatalf("what was left over was collected after %d s though blocks come", i)
		}
	}
}

// TestHeadroomIsGivenBack ends what keeps the headroom and looks at the process's setting.
func TestHeadroomIsGivenBack(t *testing.T) {
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	KeepHeadroom(ctx)
	if got := debug.SetGCPercent(77); got != 77 {
		t.Errorf("the percent is %d after, want 77 as before", got)
	}
}
