package stream

import "sync/atomic"

// writerState says whether a connection's writer runs. It does only while there is something to
// do: asleep it would keep a stack, which is most of what an idle connection costs.
type writerState struct{ state atomic.Uint32 }

const (
	idle    uint32 = iota
	running        // there is a writer
	again          // and it is to look once more before it stops
	stopped        // there is no writer any more
)

// schedule asks for the writer. It reports whether the caller is to start it.
func (w *writerState) schedule() bool {
	for {
		switch w.state.Load() {
		case idle:
			if w.state.CompareAndSwap(idle, running) {
				return true
			}
		case running:
			if w.state.CompareAndSwap(running, again) {
				return false
			}
		default:
			return false
		}
	}
}

// tryIdle lets the writer stop, unless it was scheduled again meanwhile. The writer sees what was
// done before a call of schedule that starts it or makes tryIdle fail.
func (w *writerState) tryIdle() bool {
	if w.state.CompareAndSwap(running, idle) {
		return true
	}
	w.state.Store(running) // it was scheduled again: nobody else changes that
	return false
}

// stop ends the writer for good.
func (w *writerState) stop() { w.state.Store(stopped) }
