// Package bubble runs tests by a clock of their own.
package bubble

import (
	"runtime"
	"testing"
	"testing/synctest"
)

// Test runs f in a bubble of testing/synctest: time passes when everybody waits.
//
// What lies in a pool belongs to the bubble it was made in, and so do its timers and channels. So the pools are emptied
// on the way in and out.
//
// Under the race detector f has one processor: where two goroutines of a bubble each run a timer that is due, or
// one does while the bubble runs others, the detector crashes (Go 1.26). It finds races by what happens before what, not
// by what happens at once.
func Test(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	emptyPools()
	defer emptyPools()
	if RaceEnabled {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	synctest.Test(t, f)
}

// emptyPools collects twice: what a pool held before the first is kept for one more.
func emptyPools() {
	runtime.GC()
	runtime.GC()
}
