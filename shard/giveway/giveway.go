// Package giveway yields between two slices of long work: to goroutines that wait for the network, to other
// goroutines, and to other threads on the same processor.
//
// runtime.Gosched does not yield to the network: the scheduler resumes a goroutine that yields before it polls
// the network, and nothing else polls while every processor runs a goroutine. Requests that
// have arrived then wait in their sockets until the runtime polls, after 10 ms at the latest. So a [Worker]
// writes a byte into a pipe and waits until the poller finds it readable: the same poll finds all sockets that became
// readable earlier. One processor of the scheduler more than there are cores does not make that needless: beside two shards at work and a log
// that is synced, on a busy machine, the slowest tenth of answers took 11 to 14 ms without the pipe, and 3 to 10 ms with it.
//
// Neither does runtime.Gosched yield to another thread that waits for the processor, of this process or of a client on
// the same machine. The kernel switches threads at a tick of its clock, 4 ms apart on most machines. So a worker
// also calls sched_yield between slices.
//
// All of it takes microseconds when nothing else can run.
package giveway

import (
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
)

// Worker is a goroutine that works in slices while others ask it questions. It yields to the network and to
// other threads only for some time after a question.
type Worker struct {
	asked     atomic.Bool // a question came since the last slice
	attention int         // slices after which it still yields

	in, out *os.File
	conn    syscall.RawConn       // of in; nil: no pipe could be opened, so the network is not polled
	receive func(fd uintptr) bool // readOrSend, bound once
}

// attentionSlices is how many slices a question counts for: some 10 ms of work.
const attentionSlices = 64

// Question records that somebody asks. Any goroutine may call it.
func (w *Worker) Question() {
	if !w.asked.Load() { // a store would take the cache line from the other processors
		w.asked.Store(true)
	}
}

// Open makes the pipe, for the goroutine that calls Pass. The worker must be closed.
func (w *Worker) Open() {
	in, out, err := os.Pipe()
	if err != nil {
		return
	}
	w.in, w.out, w.receive = in, out, w.readOrSend
	w.conn, _ = in.SyscallConn() // fails only on a closed pipe
}

// Close ends what Open began.
func (w *Worker) Close() {
	w.in.Close() // nil if there is no pipe, which Close allows
	w.out.Close()
}

// Pass yields. Only the goroutine that called Open may call it.
func (w *Worker) Pass() {
	if w.asked.Swap(false) {
		w.attention = attentionSlices
	}
	if w.attention > 0 {
		w.attention--
		w.pollNetwork()
		yieldProcessor()
	}
	runtime.Gosched() // also for goroutines that pollNetwork made runnable: the last one found runs first
}

// Turn yields to other goroutines and threads, without polling the network. Any goroutine may call it.
func Turn() {
	yieldProcessor()
	runtime.Gosched()
}

// yieldProcessor yields to other threads that wait for this processor. The Go scheduler does not see the call, so
// the goroutine keeps its P.
func yieldProcessor() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) } // it cannot fail

// pollNetwork returns after the scheduler has polled the network.
func (w *Worker) pollNetwork() {
	if w.conn != nil {
		_ = w.conn.Read(w.receive) // fails only on a closed pipe
	}
}

// readOrSend is called by RawConn.Read until it returns true. First the pipe is empty, so it writes the byte and returns false, and the
// goroutine waits until the poller finds the pipe readable; then it reads the byte.
func (w *Worker) readOrSend(fd uintptr) (done bool) {
	var b [1]byte
	if _, err := syscall.Read(int(fd), b[:]); err != syscall.EAGAIN {
		return true
	}
	_, err := w.out.Write(b[:])
	return err != nil
}
