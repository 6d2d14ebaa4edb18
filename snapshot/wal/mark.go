package wal

import "errors"

// markSoonLocked has newest name what became durable, markEvery from now at the latest.
func (l *Log) markSoonLocked() {
	l.durableAt.Store(&newest{index: l.newestLocked().index, durable: l.durable.position})
	if !l.marking.Swap(true) {
		l.marker.Reset(markEvery)
	}
}

// mark has newest name the end of what is durable: a log that ends before it has lost records. The timer
// marker calls it. It does not take mu, so no commit waits for it. Any failure but want of space ends the log.
func (l *Log) mark() {
	l.announcing <- struct{}{}
	defer func() { <-l.announcing }()
	l.marking.Store(false)
	if l.closed.Load() || l.Err() != nil {
		return
	}
	switch err := announce(&l.c, *l.durableAt.Load()); {
	case errors.Is(err, ErrNoSpace):
		l.marking.Store(true)
		l.marker.Reset(markEvery)
	case err != nil:
		_ = l.fail(err)
	}
}
