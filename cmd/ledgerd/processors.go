package main

import (
	"os"
	"runtime"
)

// addProcessor lets one more goroutine run at once than there are cores, unless GOMAXPROCS in the environment says how many, and returns
// the cores and what takes it back.
//
// A goroutine runs on a thread that holds one of the scheduler's processors (Ps). The thread keeps it while it waits in fdatasync, until the
// runtime's monitor looks, up to 10 ms later, and while the kernel has another program run in its place, for a slice of 4 ms. Meanwhile
// nobody runs the goroutines in that P's queue. With as many Ps as cores, each such moment stops a share of all answers; with one more, the
// kernel has a thread of the node to run instead.
func addProcessor() (cores int, restore func()) {
	cores = runtime.GOMAXPROCS(0)
	if os.Getenv("GOMAXPROCS") != "" {
		return cores, func() {}
	}
	runtime.GOMAXPROCS(cores + 1)
	return cores, func() { runtime.GOMAXPROCS(cores) }
}
