package nodetest

import (
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// faultListener is a listener whose connections break on command.
type faultListener struct {
	net.Listener

	mu    sync.Mutex
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
		c := &faultConn{Conn: inner, listener: l, closed: make(chan struct{}), cutAt: -1, stallAt: -1}
		l.mu.Lock()
		if time.Now().Before(l.until) {
			l.mu.Unlock()
			inner.Close()
			continue
		}
		l.open[c] = struct{}{}
		for _, f := range l.next {
			c.inject(f)
		}
		l.next = nil
		l.mu.Unlock()
		return c, nil
	}
}

// inject has a fault hit every open connection, or the next one where none is open.
func (l *faultListener) inject(f Fault) {
	l.mu.Lock()
	if f.Kind == Down {
		l.until = time.Now().Add(f.For)
	} else if len(l.open) == 0 {
		l.next = append(l.next, f)
	}
	open := slices.Collect(maps.Keys(l.open))
	l.mu.Unlock()
	for _, c := range open {
		if f.Kind == Down {
			c.Close()
		} else {
			c.inject(f)
		}
	}
}

// heal lets connections through again.
func (l *faultListener) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next, l.until = nil, time.Time{}
	for c := range l.open {
		c.mu.Lock()
		c.cutAt, c.stallAt, c.slowUntil = -1, -1, time.Time{}
		c.mu.Unlock()
	}
}

// conn is a connection whose way to the client breaks on command.
type faultConn struct {
	net.Conn
	listener *faultListener
	once     sync.Once
	closed   chan struct{}

	mu        sync.Mutex
	written   int
	cutAt     int // bytes after which it ends, -1 for never
	stallAt   int // bytes after which it stalls, -1 for never
	stallFor  time.Duration
	slowUntil time.Time
}

var errCut = errors.New("the connection was cut")

// inject notes what will happen to the connection.
func (c *faultConn) inject(f Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch f.Kind {
	case Cut:
		c.cutAt = c.written + f.After
	case Stall:
		c.stallAt, c.stallFor = c.written+f.After, f.For
	case Trickle:
		c.slowUntil = time.Now().Add(f.For)
	}
}

// Write implements net.Conn.
func (c *faultConn) Write(b []byte) (n int, err error) {
	for n < len(b) {
		size, wait, err := c.next(len(b) - n)
		if err != nil {
			return n, err
		}
		if wait > 0 && !c.pause(wait) {
			return n, errCut
		}
		wrote, err := c.Conn.Write(b[n : n+size])
		n += wrote
		c.mu.Lock()
		c.written += wrote
		c.mu.Unlock()
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

const (
	trickleBytes = 7
	trickleEvery = 50 * time.Millisecond
)

// next returns how many of so many bytes may be written now, after a wait.
func (c *faultConn) next(size int) (int, time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cutAt >= 0 {
		if c.written >= c.cutAt {
			c.mu.Unlock()
			c.Close()
			c.mu.Lock()
			return 0, 0, errCut
		}
		size = min(size, c.cutAt-c.written)
	}
	if c.stallAt >= 0 {
		if c.written >= c.stallAt {
			c.stallAt = -1
			return 0, c.stallFor, nil
		}
		size = min(size, c.stallAt-c.written)
	}
	if time.Now().Before(c.slowUntil) {
		return min(size, trickleBytes), trickleEvery, nil
	}
	return size, 0, nil
}

// pause waits, and returns false if the connection was closed meanwhile.
func (c *faultConn) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-c.closed:
		return false
	}
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
	err := net.ErrClosed
	c.once.Do(func() {
		close(c.closed)
		c.listener.mu.Lock()
		delete(c.listener.open, c)
		c.listener.mu.Unlock()
		err = c.Conn.Close()
	})
	return err
}
