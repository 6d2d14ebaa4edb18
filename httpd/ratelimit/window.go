package ratelimit

import (
	"sync/atomic"
	"time"
)

// instant is a time in milliseconds since the limiter's start.
type instant int64

// until returns the time from i to a later instant.
func (i instant) until(later instant) time.Duration {
	return time.Duration(later-i) * time.Millisecond
}

// counter counts the requests of one client, or of a bucket's newcomers.
type counter [Kinds]window

// window counts the requests of one fixed window in one word:
//
//	63            24 23         0
//	| start, ms 40 | requests 24 |
//
// A window without requests has not started. goneWord in the minute's word says that the
// counter was evicted from the table.
type window struct{ word atomic.Uint64 }

const (
	countBits = 24
	maxCount  = 1<<countBits - 1
	goneWord  = ^uint64(0) // no start is that late
)

// reading is a window as it stood at one instant.
type reading struct {
	start, ends instant
	used        int
}

// spent reports whether nothing is left of a limit; 0 is no limit.
func (r reading) spent(limit int) bool { return limit > 0 && r.used >= limit }

type outcome uint8

const (
	granted outcome = iota
	refused
	gone
)

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

func (r reading) word() uint64 { return uint64(r.start)<<countBits | uint64(r.used) }

// look returns the window as it stands.
func (w *window) look(k Kind, at instant) reading { return read(w.word.Load(), k, at) }

// take counts one request unless the limit is reached. The reading includes it.
func (w *window) take(k Kind, at instant, limit int) (reading, outcome) {
	for {
		word := w.word.Load()
		if word == goneWord {
			return reading{}, gone
		}
		r := read(word, k, at)
		if r.spent(limit) {
			return r, refused
		}
		r.used = min(r.used+1, maxCount) // a window without a limit stops counting there
		if w.word.CompareAndSwap(word, r.word()) {
			return r, granted
		}
	}
}

// giveBack takes one request of the window that was read out again, unless that window
// is no more.
func (w *window) giveBack(r reading) {
	for {
		word := w.word.Load()
		if word == goneWord || instant(word>>countBits) != r.start || word&maxCount == 0 {
			return
		}
		if w.word.CompareAndSwap(word, word-1) {
			return
		}
	}
}

// isGone reports whether the counter was evicted.
func (c *counter) isGone() bool { return c[Minute].word.Load() == goneWord }

// use returns how much of its limits the counter has used, in thousandths of the fuller
// one, and whether it may be evicted: both are at or below half. A counter whose windows
// are over has used nothing. word is the minute's, for evict.
func (c *counter) use(at instant, limits *[Kinds]int) (thousandths int, evictable bool, word uint64) {
	word = c[Minute].word.Load()
	used := [Kinds]int{
		Minute: read(word, Minute, at).used,
		Hour:   c[Hour].look(Hour, at).used,
	}
	evictable = true
	for k, limit := range limits {
		if limit > 0 {
			thousandths = max(thousandths, (used[k]*1000+limit-1)/limit)
			evictable = evictable && used[k]*2 <= limit
		}
	}
	return thousandths, evictable, word
}

// evict marks the counter as gone unless a request was counted since word was read. Requests
// that still hold the counter look for a new one.
func (c *counter) evict(word uint64) bool {
	return c[Minute].word.CompareAndSwap(word, goneWord)
}
