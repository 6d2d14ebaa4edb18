package engine

import (
	"runtime"
	"sync"
	"syscall"
	"time"

	"ledgerd/snapshot"
)

const (
	// snapshotShare is how much of one core each goroutine that writes or checks a snapshot takes while
	// the process has little else to do.
	snapshotShare = 0.25
	// busyShare is the least it takes, however many of the processors are at work.
	busyShare = 0.05
	// loadedOver is the time over which it is looked how busy they are.
	loadedOver = 100 * time.Millisecond
)

// snapshotPace returns how fast a snapshot is taken that begins now: out of the way of those who ask, as
// long as there is time. The more log gathers behind it the faster it becomes, up to full speed when the
// next one is due: what a snapshot pins in memory grows with what is written.
func (e *Engine) snapshotPace() snapshot.Pace {
	var p processors
	began := e.log.stats().Position
	return snapshot.Pace{Share: func() float64 {
		return paceShare(p.busy(time.Now(), processTime()), uint64(e.log.stats().Position-began))
	}}
}

// paceShare returns a share of one core. busy is the part of all processors that is at work, behind how
// many bytes of log there are that the snapshot does not cover.
func paceShare(busy float64, behind uint64) float64 {
	return max(busyShare, snapshotShare*(1-2*busy)) + float64(behind)/maxReplayBytes
}

// processors tells how busy this process keeps them. The zero value is ready; any goroutine may ask.
type processors struct {
	mu    sync.Mutex
	since time.Time
	used  time.Duration // until since
	part  float64
}

// busy returns the part of all processors that was used lately, all of them before that is known.
func (p *processors) busy(now time.Time, used time.Duration) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch took := now.Sub(p.since); {
	case p.since.IsZero():
		p.since, p.used, p.part = now, used, 1
	case took >= loadedOver:
		p.part = float64(used-p.used) / float64(took) / float64(runtime.GOMAXPROCS(0))
		p.since, p.used = now, used
	}
	return p.part
}

// processTime returns how long all threads of the process have been at work.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil { // it cannot fail
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
