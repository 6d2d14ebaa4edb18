package load

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// conn is one connection of a thread.
type conn struct {
	fd     int       // -1: none
	sent   []request // in flight, the oldest first
	unsent []byte    // what waits for the connection to be made
	ready  bool      // it is in the list of the loop
	proven bool      // there was a response since it was opened

	rest  []byte // the beginning of a head that is not there whole
	frame Frame  // of the last response that began
	skip  int    // bytes of that which are still to come
}

// request is a request in flight.
type request struct {
	due, at int64 // when it was due, and when it was sent
	index   int   // in the script
}

var (
	errTimeout = fmt.Errorf("no response within %v", patience)
	errAtEnd   = errors.New("no response before the end")
	errClosed  = errors.New("connection closed before the response")
	errUnasked = errors.New("a response that was not asked for")
)

// shut closes the connection and forgets what was in flight.
func (c *conn) shut() {
	if c.fd >= 0 {
		_ = unix.Close(c.fd)
	}
	*c = conn{fd: -1, ready: c.ready, sent: c.sent[:0], unsent: c.unsent[:0], rest: c.rest[:0]}
}

// open begins to connect.
func (l *loop) open(i int) (err error) {
	c := &l.conns[i]
	to, family := sockaddr(l.config.Address)
	if c.fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
		return fmt.Errorf("cannot open a socket: %w", err)
	}
	_ = unix.SetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if l.config.Clients > 0 {
		err = unix.Bind(c.fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, byte(1 + i%l.config.Clients)}})
	}
	if err == nil {
		err = unix.Connect(c.fd, to)
	}
	if err == nil || err == unix.EINPROGRESS {
		err = l.watch(i, unix.EPOLL_CTL_ADD, unix.EPOLLIN|unix.EPOLLOUT)
	}
	if err != nil {
		return fmt.Errorf("cannot connect: %w", err)
	}
	return nil
}

// watch says which events of a connection epoll tells of.
func (l *loop) watch(i, change int, events uint32) error {
	return unix.EpollCtl(l.epoll, change, l.conns[i].fd, &unix.EpollEvent{Events: events, Fd: int32(i)})
}

// sockaddr is an address as the kernel takes it.
func sockaddr(a netip.AddrPort) (address unix.Sockaddr, family int) {
	if a.Addr().Unmap().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}, unix.AF_INET
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}, unix.AF_INET6
}

// ask sends as many requests on a connection as are due and it has room for. One that is not open yet
// sends them when it is.
func (l *loop) ask(i int) error {
	c := &l.conns[i]
	opening := len(c.unsent) > 0
	for len(c.sent) < l.config.Depth && l.due() <= l.now && l.pending() {
		c.sent = append(c.sent, request{l.due(), l.now, l.next})
		c.unsent = append(c.unsent, l.config.Script[l.next]...)
		l.next = (l.next + 1) % len(l.config.Script)
		l.asked++
		l.waiting++
	}
	if c.fd < 0 {
		return l.open(i)
	}
	if opening {
		return nil
	}
	if err := c.write(); err != nil {
		return fmt.Errorf("cannot send: %w", err)
	}
	return nil
}

// write writes what is unsent. The kernel has room for it: what is in flight on a connection is a few kilobytes.
func (c *conn) write() error {
	n, err := unix.Write(c.fd, c.unsent)
	if err == nil && n < len(c.unsent) {
		err = io.ErrShortWrite
	}
	c.unsent = c.unsent[:0]
	return err
}

// handle takes what epoll tells of a connection: that it is made or cannot be, or that there is something to read.
func (l *loop) handle(i int, events uint32) {
	c := &l.conns[i]
	var err error
	if events&unix.EPOLLOUT != 0 {
		if err = errors.Join(c.write(), l.watch(i, unix.EPOLL_CTL_MOD, unix.EPOLLIN)); err != nil {
			err = fmt.Errorf("cannot connect: %w", err)
		}
	}
	if err == nil && events&^unix.EPOLLOUT != 0 {
		err = l.read(c)
	}
	if err != nil {
		l.broken(i, err)
	} else {
		l.again(i)
	}
}

// broken closes a connection and counts its requests in flight as failed. The next request opens
// it again; after a failure without any response that waits until the connections are looked after.
func (l *loop) broken(i int, why error) {
	c := &l.conns[i]
	lost, rests := len(c.sent), len(c.sent) > 0 && !c.proven
	c.shut()
	if lost > 0 {
		l.waiting -= lost
		l.counts.Errors[why.Error()] += lost
	}
	if !rests {
		l.again(i)
	}
}

// read takes what responses there are.
func (l *loop) read(c *conn) error {
	held := copy(l.buffer, c.rest)
	n, err := unix.Read(c.fd, l.buffer[held:])
	switch {
	case err == unix.EAGAIN:
		return nil // the event was of a connection before this one
	case err != nil:
		return fmt.Errorf("cannot receive: %w", err)
	case n == 0:
		return errClosed
	}
	l.now = l.clock()
	l.counts.Bytes += int64(n)
	return l.parse(c, l.buffer[:held+n])
}

// parse counts the responses in b, and keeps what begins another.
func (l *loop) parse(c *conn, b []byte) (err error) {
	c.rest = c.rest[:0]
	for len(b) > 0 {
		if c.skip == 0 {
			c.frame, err = l.config.Frame(b)
			switch {
			case err != nil:
				return err
			case c.frame.Head == 0:
				c.rest = append(c.rest, b...)
				return nil
			case len(c.sent) == 0:
				return errUnasked
			}
			if c.skip = c.frame.Head + c.frame.Body; len(b) >= c.skip {
				l.verify(c, b)
			}
			if c.frame.Status == http.StatusTooManyRequests {
				l.counts.RetryAfter = cmp.Or(l.counts.RetryAfter, string(Field(b[:c.frame.Head], "Retry-After")))
				if l.config.StopAt429 {
					l.stop()
				}
			}
		}
		n := min(c.skip, len(b))
		b = b[n:]
		if c.skip -= n; c.skip > 0 {
			return nil
		}
		l.answered(c)
		if c.frame.Last {
			return errClosed
		}
	}
	return nil
}

// answered counts the response to the oldest request in flight.
func (l *loop) answered(c *conn) {
	l.counts.Statuses[c.frame.Status]++
	l.counts.Latency.Record(time.Duration(l.now - c.sent[0].due))
	c.sent = slices.Delete(c.sent, 0, 1)
	c.proven = true
	l.waiting--
}

// verify verifies some responses.
func (l *loop) verify(c *conn, b []byte) {
	index := c.sent[0].index
	if l.config.Verify == nil || index%verifyEvery != 0 {
		return
	}
	l.counts.Verified++
	head, body := b[:c.frame.Head], b[c.frame.Head:c.frame.Head+c.frame.Body]
	if err := l.config.Verify(index, c.frame.Status, head, body); err != nil && l.counts.Wrong == nil {
		l.counts.Wrong = fmt.Errorf("a response is wrong: %w", err)
	}
}
