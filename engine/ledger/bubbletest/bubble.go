// Package bubbletest runs tests with a fake clock.
package bubbletest

import (
	"runtime"
	"testing"
	"testing/synctest"
)

// Test runs f in a bubble of testing/synctest: time passes when all goroutines of f wait.
//
// An object in a sync.Pool may hold timers and channels of the bubble that made it, which no other bubble may use. So Test
// empties the pools before and after f.
//
// Under the race detector f has one processor, because the detector crashes where two goroutines of a bubble each run a timer
// that is due, or one does while the bubble runs others (Go 1.26). It still finds races: it looks at the order of
// synchronization, not at simultaneous access.
func Test(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	emptyPools()
	defer emptyPools()
	if RaceEnabled {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	synctest.Test(t, f)
}

// emptyPools runs two collections, because a pool keeps its objects for one.
func emptyPools() {
	runtime.GC()
	runtime.GC()
}

// Each runs f in a bubble of its own for each row of a table.
func Each[T any](t *testing.T, rows map[string]T, f func(t *testing.T, row T)) {
	t.Helper()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) { Test(t, func(t *testing.T) { f(t, row) }) })
	}
}
