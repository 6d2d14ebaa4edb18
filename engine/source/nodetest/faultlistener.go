package nodetest

import (
	"context"
	"errors"
	"math"
	"net"
	"sync"
	"time"
)

// faultListener is a listener whose connections break on command.
type faultListener struct {
	net.Listener

	mu    sync.Mutex // of its connections too
	open  map[*faultConn]struct{}
	next  []Fault   // for the next connection: none was open when they came
	until time.Time // connections are refused until then
}

func newFaultListener(l net.Listener) *faultListener {
	return &faultListener{Listener: l, open: make(map[*faultConn]struct{})}
}

// Accept implements net.Listener.
func (l *faultListener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &faultConn{Conn: inner, listener: l}
		c.ctx, c.end = context.WithCancel(context.Background())
		if l.admit(c) {
			return c, nil
		}
		c.Close()
	}
}

// admit notes a connection, and has the faults hit it that waited for it, unless connections are refused.
func (l *faultListener) admit(c *faultConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Now().Before(l.until) {
		return false
	}
	l.open[c] = struct{}{}
	c.heal()
	for _, f := range l.next {
		c.inject(f)
	}
	l.next = nil
	return true
}

// inject has a fault hit every open connection, or the next one where none is open.
func (l *faultListener) inject(f Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case f.Kind == Down:
		l.until = time.Now().Add(f.For)
	case len(l.open) == 0:
		l.next = append(l.next, f)
	}
	for c := range l.open {
		c.inject(f)
	}
}

// heal lets connections through again.
func (l *faultListener) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next, l.until = nil, time.Time{}
	for c := range l.open {
		c.heal()
	}
}

// faultConn is a connection whose way to the client breaks on command.
type faultConn struct {
	net.Conn
	listener *faultListener
	ctx      context.Context // ends with it
	end      context.CancelFunc

	written   int
	breaksAt  int   // bytes after which the fault hits it; MaxInt: none does
	fault     Fault // Cut or Stall
	slowUntil time.Time
}

var errCut = errors.New("the connection was cut")

func (c *faultConn) heal() { c.breaksAt, c.slowUntil = math.MaxInt, time.Time{} }

// inject notes what will happen to the connection.
func (c *faultConn) inject(f Fault) {
	switch f.Kind {
	case Cut, Stall:
		c.breaksAt, c.fault = c.written+f.After, f
	case Trickle:
		c.slowUntil = time.Now().Add(f.For)
	case Down:
		c.end()
		_ = c.Conn.Close()
		delete(c.listener.open, c)
	}
}

// Write implements net.Conn.
func (c *faultConn) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		size, wait := c.next(len(b) - n)
		if size < 0 {
			c.Close()
			return n, errCut
		}
		if wait > 0 {
			select {
			case <-time.After(wait):
			case <-c.ctx.Done():
			}
		}
		size, err = c.Conn.Write(b[n : n+size])
		n += size
		c.listener.mu.Lock()
		c.written += size
		c.listener.mu.Unlock()
	}
	return n, err
}

const (
	trickleBytes = 7
	trickleEvery = 50 * time.Millisecond
)

// next returns how many of so many bytes may be written now, after a wait; -1: the connection ends.
func (c *faultConn) next(size int) (int, time.Duration) {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	size = min(size, c.breaksAt-c.written)
	switch {
	case size == 0 && c.fault.Kind == Cut:
		return -1, 0
	case size == 0:
		c.breaksAt = math.MaxInt
		return 0, c.fault.For
	case time.Now().Before(c.slowUntil):
		return min(size, trickleBytes), trickleEvery
	}
	return size, 0
}

// SetReadDeadline implements net.Conn. A deadline that has passed, by which net/http ends its reads, comes a
// moment later: in memory it is a timer, and the race detector does not survive two timers of one
// synctest bubble that are due when they are set, at once (Go 1.26).
func (c *faultConn) SetReadDeadline(t time.Time) error {
	if soon := time.Now().Add(time.Nanosecond); !t.IsZero() && t.Before(soon) {
		t = soon
	}
	return c.Conn.SetReadDeadline(t)
}

// Close implements net.Conn.
func (c *faultConn) Close() error {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.end()
	delete(c.listener.open, c)
	return c.Conn.Close()
}
