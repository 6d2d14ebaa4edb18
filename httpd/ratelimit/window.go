package ratelimit

import "sync/atomic"

// instant is a time in milliseconds since the limiter's start.
type instant int64

// counter counts the requests of one client, or of a bucket's newcomers.
type counter [Kinds]window

// window counts the requests of one fixed window in one word:
//
//	63            24 23         0
//	| start, ms 40 | requests 24 |
//
// A window without requests has not started.
type window struct{ word atomic.Uint64 }

const (
	countBits = 24
	maxCount  = 1<<countBits - 1
)

// reading is a window as it stood at one instant.
type reading struct {
	start, ends instant
	used        int
}

// read tells what a word means at an instant: a window that is over, or never started,
// is one that starts now.
func read(word uint64, k Kind, at instant) reading {
	length := instant(windowLength[k].Milliseconds())
	start, used := instant(word>>countBits), int(word&maxCount)
	if used == 0 || at >= start+length {
		return reading{start: at, ends: at + length}
	}
	return reading{start: start, ends: start + length, used: used}
}

// look returns the window as it stands.
func (w *window) look(k Kind, at instant) reading { return read(w.word.Load(), k, at) }

// take counts n requests; it is not ok, and counts none, if they pass the limit, 0 is none. The reading includes
// those that are counted.
func (w *window) take(k Kind, at instant, n, limit int) (r reading, ok bool) {
	for {
		word := w.word.Load()
		r = read(word, k, at)
		if limit > 0 && r.used+n > limit {
			return r, false
		}
		r.used = min(r.used+n, maxCount) // a window without a limit stops counting there
		if w.word.CompareAndSwap(word, uint64(r.start)<<countBits|uint64(r.used)) {
			return r, true
		}
	}
}

// giveBack takes n requests of the window that was read out again, unless that window
// is no more.
func (w *window) giveBack(r reading, n int) {
	for {
		word := w.word.Load()
		if instant(word>>countBits) != r.start || int(word&maxCount) < n || w.word.CompareAndSwap(word, word-uint64(n)) {
			return
		}
	}
}

// use returns how much of its limits the counter has used, in thousandths of the fuller one,
// rounded up. A counter whose windows are over has used nothing.
func (c *counter) use(at instant, limits *limits) (thousandths int) {
	for k, limit := range limits {
		if limit > 0 {
			used := c[k].look(Kind(k), at).used
			thousandths = max(thousandths, (used*1000+limit-1)/limit)
		}
	}
	return thousandths
}
