package httpd

import (
	"runtime"
	"sync"
	"time"
)

// newcomers are connections whose first request has not been answered yet. Accepting them
// costs less than answering them, so a storm would fill the scheduler's queue with thousands
// of them, each with its buffers, and whoever is already here would wait behind: with 15,000
// at once requests took up to 1.9 s. Half of the cores are left to those who are here; the storm
// is over as soon as with all of them.
type newcomers struct {
	most  int           // that are worked on at a time
	fewer chan struct{} // has a token after one settled

	mu     sync.Mutex
	cohort int // grows when those that are there are not waited for any more
	count  int // of the cohort
}

const (
	// newcomerPatience is how long the next one waits for one of them to settle. Then they
	// are not counted any more: those that say nothing must not keep others out.
	newcomerPatience = time.Millisecond
)

func newNewcomers() *newcomers {
	return &newcomers{most: max(1, runtime.GOMAXPROCS(0)/2), fewer: make(chan struct{}, 1)}
}

// enter counts one, and returns its cohort.
func (n *newcomers) enter() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.count++
	return n.cohort
}

// leave takes one out that has settled.
func (n *newcomers) leave(cohort int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if cohort != n.cohort {
		return
	}
	n.count--
	select {
	case n.fewer <- struct{}{}:
	default:
	}
}

// hasRoom reports whether one more may come.
func (n *newcomers) hasRoom() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.count < n.most
}

// await returns when one more may come. One goroutine calls it.
func (n *newcomers) await(closed <-chan struct{}) {
	if n.hasRoom() {
		return
	}
	patience := time.NewTimer(newcomerPatience)
	defer patience.Stop()
	for !n.hasRoom() {
		select {
		case <-n.fewer:
		case <-closed:
			return
		case <-patience.C:
			n.mu.Lock()
			n.cohort, n.count = n.cohort+1, 0
			n.mu.Unlock()
		}
	}
}
