package shard

import (
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
)

// giveway lets the network in between two slices of work. Yielding alone does not: a goroutine that
// yields is taken up again before the scheduler looks at the network, and while every processor
// has a shard at work nobody else looks. Requests that have arrived then lie in their sockets until
// the runtime looks by itself, after 10 ms.
//
// So a shard queues up behind them at the same door: it sends itself a byte through a pipe, and
// whoever was readable before it goes first.
//
// Nor does any of that help another thread that waits for the processor, of this process or of a client
// on the same machine. The kernel lets the shard's go on for its slice, which ends with a tick of its
// clock, 4 ms apart on most machines, and whoever was interrupted in the middle of an answer waits as
// long. So the shard offers its processor between slices.
//
// Both take microseconds when nobody waits, and are done only while questions come.
type giveway struct {
	asked     atomic.Bool // somebody had a question since the last slice
	attention int         // slices for which more are expected

	in, out *os.File
	conn    syscall.RawConn       // of in; nil: no pipe was to be had, and yielding must do
	turn    func(fd uintptr) bool // receive, bound once
	sent    bool                  // the byte of this turn
}

// attentionSlices are some 10 ms of work.
const attentionSlices = 64

// question notes that somebody asks. Any goroutine may call it.
func (g *giveway) question() {
	if !g.asked.Load() { // or the readers would take the line from one another
		g.asked.Store(true)
	}
}

// open makes the pipe, for the goroutine that calls pass. It must be closed.
func (g *giveway) open() {
	in, out, err := os.Pipe()
	if err != nil {
		return
	}
	g.in, g.out, g.turn = in, out, g.receive
	if conn, err := in.SyscallConn(); err == nil {
		g.conn = conn
	}
}

func (g *giveway) close() {
	if g.in != nil {
		g.in.Close()
		g.out.Close()
	}
}

// pass lets others go first.
func (g *giveway) pass() {
	if g.asked.Swap(false) {
		g.attention = attentionSlices
	}
	if g.attention > 0 {
		g.attention--
		g.lookAtNetwork()
		offerProcessor()
	}
	runtime.Gosched() // also for those who were found: the last one found is the first to run
}

// offerProcessor has the kernel run the threads that wait for this processor first. The goroutine keeps its
// place in the Go scheduler meanwhile: what waits there is for whoever has the other processors.
func offerProcessor() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) } // it cannot fail

// lookAtNetwork returns after the scheduler has looked at the network.
func (g *giveway) lookAtNetwork() {
	if g.conn != nil {
		g.sent = false
		_ = g.conn.Read(g.turn) // fails only on a closed pipe
	}
}

// receive sends the byte, reports that nothing is there, so that the goroutine waits for the network to
// bring it, and then takes it.
func (g *giveway) receive(fd uintptr) (done bool) {
	var b [1]byte
	if !g.sent {
		g.sent = true
		_, err := g.out.Write(b[:])
		return err != nil
	}
	_, err := syscall.Read(int(fd), b[:])
	return err != syscall.EAGAIN
}
