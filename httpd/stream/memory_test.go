package stream

import (
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// inMemory runs a test with a node whose connections are pipes, in a bubble of
// testing/synctest: time passes only while everybody waits, and nothing may still run when
// the test is over. All durations are what an operator gets who sets none.
func inMemory(t *testing.T, change func(*Config), test func(*node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Minute) }) // until the cleaner of its workers has slept out
		n := newNode(t, Config{}, change)
		ln := &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
		n.connect = ln.connect
		n.start(ln)
		test(n)
	})
}

// pipes is a listener in memory.
type pipes struct {
	accepted chan net.Conn
	closing  sync.Once
	closed   chan struct{}
}

// connect makes a connection. It holds nothing: what one end writes waits until the other reads it.
func (l *pipes) connect() (net.Conn, error) {
	far, near := net.Pipe()
	conn := &pipe{Conn: far, near: &nearEnd{Conn: near, closed: make(chan struct{})}}
	select {
	case l.accepted <- conn.near:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	return conn, conn.SetDeadline(time.Now().Add(time.Hour)) // of the bubble: should a test never end
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accepted:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return nil
}

func (l *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// pipe is the client's end of a connection in memory.
type pipe struct {
	net.Conn
	near *nearEnd
}

// nearEnd is the server's end. It notes how it was closed.
type nearEnd struct {
	net.Conn
	closing sync.Once
	closed  chan struct{}

	mu     sync.Mutex
	resets bool // closing is a reset
	faulty bool // writes panic
}

func (e *nearEnd) SetLinger(seconds int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.resets = seconds == 0
	return nil
}

func (e *nearEnd) Write(b []byte) (int, error) {
	e.mu.Lock()
	faulty := e.faulty
	e.mu.Unlock()
	if faulty {
		panic("a fault")
	}
	return e.Conn.Write(b)
}

func (e *nearEnd) Close() error {
	e.closing.Do(func() { close(e.closed) })
	return e.Conn.Close()
}

// fail makes every write panic.
func (e *nearEnd) fail() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faulty = true
}

func (e *nearEnd) wasReset() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.resets
}

// near is the server's end of a client in memory.
func (c *client) near() *nearEnd { return c.conn.(*pipe).near }
