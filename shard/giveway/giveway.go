// Package giveway lets others go first between two slices of long work: the network, other goroutines, and
// other threads on the same processor.
//
// Yielding alone does not let the network in: a goroutine that yields is taken up again before the
// scheduler looks at the network, and while every processor has a goroutine at work nobody else
// looks. Requests that have arrived then lie in their sockets until the runtime looks by itself, after
// 10 ms. So a [Worker] queues up behind them at the same door: it sends itself a byte through a pipe, and
// whoever was readable before it goes first.
//
// Nor does that help another thread that waits for the processor, of this process or of a client on the
// same machine. The kernel lets who runs go on for a slice, which ends with a tick of its clock, 4 ms apart on
// most machines, and whoever was interrupted in the middle of an answer waits as long. So the processor
// is offered between slices.
//
// All of it takes microseconds when nobody waits.
package giveway

import (
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
)

// Worker is a goroutine that works in slices while others ask questions: it gives way to the network and to
// other threads only while questions come.
type Worker struct {
	asked     atomic.Bool // somebody had a question since the last slice
	attention int         // slices for which more are expected

	in, out *os.File
	conn    syscall.RawConn       // of in; nil: no pipe was to be had, and yielding must do
	turn    func(fd uintptr) bool // receive, bound once
	sent    bool                  // the byte of this turn
}

// attentionSlices are some 10 ms of work.
const attentionSlices = 64

// Question notes that somebody asks. Any goroutine may call it.
func (w *Worker) Question() {
	if !w.asked.Load() { // or the readers would take the line from one another
		w.asked.Store(true)
	}
}

// Open makes the pipe, for the goroutine that calls Pass. The worker must be closed.
func (w *Worker) Open() {
	in, out, err := os.Pipe()
	if err != nil {
		return
	}
	w.in, w.out, w.turn = in, out, w.receive
	if conn, err := in.SyscallConn(); err == nil {
		w.conn = conn
	}
}

// Close ends what Open began.
func (w *Worker) Close() {
	if w.in != nil {
		w.in.Close()
		w.out.Close()
	}
}

// Pass lets others go first.
func (w *Worker) Pass() {
	if w.asked.Swap(false) {
		w.attention = attentionSlices
	}
	if w.attention > 0 {
		w.attention--
		w.lookAtNetwork()
		offerProcessor()
	}
	runtime.Gosched() // also for those who were found: the last one found is the first to run
}

// Turn lets other goroutines and threads go first.
func Turn() {
	offerProcessor()
	runtime.Gosched()
}

// offerProcessor has the kernel run the threads that wait for this processor first. The goroutine keeps its
// place in the Go scheduler meanwhile: what waits there is for whoever has the other processors.
func offerProcessor() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) } // it cannot fail

// lookAtNetwork returns after the scheduler has looked at the network.
func (w *Worker) lookAtNetwork() {
	if w.conn != nil {
		w.sent = false
		_ = w.conn.Read(w.turn) // fails only on a closed pipe
	}
}

// receive sends the byte, reports that nothing is there, so that the goroutine waits for the network to
// bring it, and then takes it.
func (w *Worker) receive(fd uintptr) (done bool) {
	var b [1]byte
	if !w.sent {
		w.sent = true
		_, err := w.out.Write(b[:])
		return err != nil
	}
	_, err := syscall.Read(int(fd), b[:])
	return err != syscall.EAGAIN
}
