package main

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

// TestLeftoversAreCollectedOnceAfterABurst lets time pass.
func TestLeftoversAreCollectedOnceAfterABurst(t *testing.T) {
	const mega = 1 << 20
	began := time.Now()
	var q lull
	allocated := uint64(0)
	for i, step := range []struct {
		after                    time.Duration
		allocates, live, objects uint64
		want                     bool
	}{
		{0, 500 * mega, 10 * mega, 100 * mega, false},
		{4 * time.Second, quietBytes, 10 * mega, 100 * mega, false},
		{5 * time.Second, 0, 10 * mega, 18 * mega, false}, // too little is left over
		{5 * time.Second, 0, 10 * mega, 19 * mega, true},
		{6 * time.Second, quietBytes, 10 * mega, 100 * mega, false}, // no burst since
		{60 * time.Second, quietBytes, 10 * mega, 100 * mega, false},
		{61 * time.Second, quietBytes + 1, 10 * mega, 100 * mega, false}, // one
		{65 * time.Second, quietBytes, 10 * mega, 100 * mega, false},
		{66 * time.Second, 0, 800 * mega, 899 * mega, false},
		{66 * time.Second, 0, 800 * mega, 901 * mega, true},
	} {
		allocated += step.allocates
		if got := q.leaves(began.Add(step.after), allocated, step.live, step.objects); got != step.want {
			t.Errorf("step %d, after %v, %d live of %d: %v, want %v", i, step.after, step.live, step.objects, got, step.want)
		}
	}
}

// TestNothingIsCollectedWhileBlocksCome allocates steadily, little or much, and leaves all of it over, without
// the collector ever running by itself.
func TestNothingIsCollectedWhileBlocksCome(t *testing.T) {
	const mega = 1 << 20
	for _, each := range []uint64{quietBytes, quietBytes + 1, 5 * mega} {
		began := time.Now()
		var q lull
		for i := range uint64(100) {
			if q.leaves(began.Add(time.Duration(i)*headroomEvery), i*each, 10*mega, 10*mega+i*each) {
				t.Fatalf("what was left over was collected after %d s though blocks come, %d bytes a second", i, each)
			}
		}
	}
}

// TestHeadroomIsGivenBack ends what keeps the headroom and looks at the process's setting.
func TestHeadroomIsGivenBack(t *testing.T) {
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	keepHeadroom(ctx)
	if got := debug.SetGCPercent(77); got != 77 {
		t.Errorf("the percent is %d after, want 77 as before", got)
	}
}
