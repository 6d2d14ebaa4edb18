package stream

import "sync/atomic"

// duty says whether a connection's writer runs. It does only while there is something to do:
// asleep it would keep a stack, which is most of what an idle connection costs.
type duty struct{ state atomic.Uint32 }

const (
	off     uint32 = iota
	on             // a writer runs
	again          // and is to look once more before it goes
	retired        // there is no writer any more
)

// call asks for the writer; it reports whether the caller is to start one.
func (d *duty) call() bool {
	for {
		switch d.state.Load() {
		case off:
			if d.state.CompareAndSwap(off, on) {
				return true
			}
		case on:
			if d.state.CompareAndSwap(on, again) {
				return false
			}
		default:
			return false
		}
	}
}

// leave lets the writer go, unless it was called again meanwhile. What is done before a call
// the writer sees that the call starts or holds back.
func (d *duty) leave() bool {
	if d.state.CompareAndSwap(on, off) {
		return true
	}
	d.state.Store(on) // it was called again: nobody else changes that
	return false
}

// retire ends all duty.
func (d *duty) retire() { d.state.Store(retired) }
