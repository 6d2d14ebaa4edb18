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

	mu        sync.Mutex
	open      map[*faultConn]struct{}
	written   int       // bytes, to all connections
	breaksAt  int       // bytes after which the connection that is written to is hit by the fault; MaxInt: none is
	fault     Fault     // Cut or Stall, the newest
	slowUntil time.Time // a few bytes at a time pass until then
	downUntil time.Time // connections are refused until then
}

func newFaultListener(inner net.Listener) *faultListener {
	l := &faultListener{Listener: inner, open: make(map[*faultConn]struct{})}
	l.heal()
	return l
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
		l.mu.Lock()
		l.open[c] = struct{}{}
		isDown := time.Now().Before(l.downUntil)
		l.mu.Unlock()
		if !isDown {
			return c, nil
		}
		c.Close()
	}
}

// inject has a fault happen.
func (l *faultListener) inject(f Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch f.Kind {
	case Cut, Stall:
		l.breaksAt, l.fault = l.written+f.After, f
	case Trickle:
		l.slowUntil = time.Now().Add(f.For)
	case Down:
		l.downUntil = time.Now().Add(f.For)
		for c := range l.open {
			c.end()
			_ = c.Conn.Close()
		}
		clear(l.open)
	}
}

// heal lets connections through again.
func (l *faultListener) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.breaksAt, l.slowUntil, l.downUntil = math.MaxInt, time.Time{}, time.Time{}
}

const (
	trickleBytes = 7
	trickleEvery = 50 * time.Millisecond
)

// next returns how many of so many bytes are to be written, after a wait; -1: the connection ends.
func (l *faultListener) next(size int) (int, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait := time.Duration(0)
	size = min(size, l.breaksAt-l.written)
	switch {
	case size == 0:
		l.breaksAt = math.MaxInt
		if l.fault.Kind == Cut {
			return -1, 0
		}
		return 0, l.fault.For
	case time.Now().Before(l.slowUntil):
		size, wait = min(size, trickleBytes), trickleEvery
	}
	l.written += size
	return size, wait
}

// faultConn is a connection whose way to the client breaks on command.
type faultConn struct {
	net.Conn
	listener *faultListener
	ctx      context.Context // ends with it
	end      context.CancelFunc
}

var errCut = errors.New("the connection was cut")

// Write implements net.Conn.
func (c *faultConn) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		size, wait := c.listener.next(len(b) - n)
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
	}
	return n, err
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
