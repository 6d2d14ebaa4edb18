package wal

import (
	"errors"
	"time"
)

// markSoonLocked has newest tell of what became durable, about markEvery from now: the timer does it, or
// a commit that finds it overdue, so that commits in close order cannot keep the timer from it.
func (l *Log) markSoonLocked() {
	switch now := time.Now(); {
	case l.markDue.IsZero():
		l.markDue = now.Add(markEvery)
		l.marker.Reset(markEvery)
	case now.After(l.markDue):
		_ = l.markLocked() // a failure is the next commit's
	}
}

// mark is the timer's.
func (l *Log) mark() {
	if !l.mu.TryLock() {
		l.marker.Reset(markEvery) // a commit is under way
		return
	}
	defer l.mu.Unlock()
	if l.usableLocked() == nil {
		_ = l.markLocked()
	}
}

// markLocked has newest name the end of what is durable: a log that ends before it has lost records.
// A failure but want of space ends the log.
func (l *Log) markLocked() error {
	if l.marked != l.durable.position {
		err := announce(&l.c, newest{index: l.newestLocked().index, durable: l.durable.position})
		if errors.Is(err, ErrNoSpace) {
			l.markDue = time.Now().Add(markEvery)
			l.marker.Reset(markEvery)
			return err
		}
		if err != nil {
			return l.failLocked(err)
		}
	}
	l.marked, l.markDue = l.durable.position, time.Time{}
	return nil
}
