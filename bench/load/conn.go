package load

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// conn is one connection of a thread.
type conn struct {
	fd      int // -1: none
	opening bool
	local   netip.Addr

	sent         []request // a ring of those in flight
	first, count int
	unsent       []byte // what the socket had no room for
	answers      int    // since it was opened
	since        int64  // when it was answered last, or asked if nothing was in flight
	ending       bool   // the server closes it

	rest   []byte // the beginning of a head that is not there whole
	skip   int    // bytes of a body that are still to come
	status int    // of the response that is skipped
}

// request is a request in flight.
type request struct {
	due   int64
	index int // in the script
}

// news is what epoll tells of a connection, once each time.
const news = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET

// noneAtEnd is why requests failed that were in flight when the load gave up waiting.
const noneAtEnd = "no response before the end"

var (
	errTimeout = fmt.Errorf("no response within %v", patience)
	errClosed  = errors.New("connection closed before the response")
	errUnasked = errors.New("a response that was not asked for")
	retryField = []byte("\r\nRetry-After: ")
)

func (c *conn) shut() {
	if c.fd >= 0 {
		_ = unix.Close(c.fd)
	}
	c.fd, c.opening, c.ending, c.first, c.count, c.skip = -1, false, false, 0, 0, 0
	c.answers, c.unsent, c.rest = 0, c.unsent[:0], c.rest[:0]
}

// open begins to connect.
func (l *loop) open(i int) error {
	c := &l.conns[i]
	to, family := sockaddr(l.config.Address)
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot open a socket: %w", err)
	}
	c.fd, c.opening = fd, true
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if c.local.IsValid() {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1) // the port is chosen at connect: more can be used
		from, _ := sockaddr(netip.AddrPortFrom(c.local, 0))
		err = unix.Bind(fd, from)
	}
	if err == nil {
		err = unix.Connect(fd, to)
	}
	if err == nil || err == unix.EINPROGRESS {
		err = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: news, Fd: int32(i)})
	}
	if err != nil {
		return fmt.Errorf("cannot connect: %w", err)
	}
	return nil
}

// sockaddr is an address as the kernel takes it.
func sockaddr(a netip.AddrPort) (address unix.Sockaddr, family int) {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}, unix.AF_INET
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}, unix.AF_INET6
}

// handle takes what epoll tells of a connection.
func (l *loop) handle(i int, events uint32) {
	c := &l.conns[i]
	if c.opening {
		if code, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR); err != nil || code != 0 {
			l.broken(i, fmt.Errorf("cannot connect: %w", errors.Join(err, unix.Errno(code))))
			return
		}
		c.opening = false
	}
	if err := c.flush(); err != nil {
		l.broken(i, err)
		return
	}
	if events&^unix.EPOLLOUT == 0 {
		return
	}
	before := c.count
	err := l.read(c)
	answered := before - c.count
	if err == nil && events&unix.EPOLLRDHUP != 0 {
		err = errClosed // all that it sent before was read
	}
	if err != nil || c.ending && c.count == 0 {
		l.broken(i, err)
	}
	l.again(i, answered)
}

// again has a connection send as many requests as it has room for: at once in a closed loop,
// when they are due in an open one.
func (l *loop) again(i, count int) {
	switch {
	case count == 0:
	case l.config.Rate > 0:
		for range count {
			l.ready = append(l.ready, i)
		}
	case l.now < l.until:
		l.send(i, count, l.now)
	}
}

// broken closes a connection and counts its requests in flight as failed. The next request opens
// it again; after a failure without any response that waits for a moment.
func (l *loop) broken(i int, why error) {
	c := &l.conns[i]
	lost, answers := c.count, c.answers
	c.shut()
	if lost == 0 {
		return
	}
	l.waiting -= lost
	l.counts.Errors[why.Error()] += lost
	if answers > 0 {
		l.again(i, lost)
		return
	}
	for range lost {
		l.resting = append(l.resting, i)
	}
}

// send sends so many requests, one after the other.
func (l *loop) send(i, count int, due int64) {
	c := &l.conns[i]
	if c.count == 0 {
		c.since = l.now
	}
	for range count {
		c.sent[(c.first+c.count)%len(c.sent)] = request{due, l.next}
		c.unsent = append(c.unsent, l.config.Script.request(l.next)...)
		c.count++
		l.waiting++
		l.next = (l.next + 1) % l.config.Script.Len()
	}
	var err error
	if c.fd < 0 {
		err = l.open(i)
	}
	if err == nil && !c.opening {
		err = c.flush()
	}
	if err != nil {
		l.broken(i, err)
	}
}

// flush writes what is unsent, as far as the socket has room for it.
func (c *conn) flush() error {
	for len(c.unsent) > 0 {
		n, err := unix.Write(c.fd, c.unsent)
		switch {
		case err == unix.EAGAIN:
			return nil
		case err == nil:
			c.unsent = append(c.unsent[:0], c.unsent[n:]...)
		case err != unix.EINTR:
			return fmt.Errorf("cannot send: %w", err)
		}
	}
	return nil
}

// read takes what responses there are.
func (l *loop) read(c *conn) error {
	for {
		held := copy(l.buffer, c.rest)
		n, err := unix.Read(c.fd, l.buffer[held:])
		switch {
		case err == unix.EAGAIN:
			return nil
		case err == unix.EINTR:
			continue
		case err != nil:
			return fmt.Errorf("cannot receive: %w", err)
		case n == 0:
			return errClosed
		}
		l.now = l.clock()
		l.counts.Bytes += int64(n)
		if err := l.parse(c, l.buffer[:held+n]); err != nil {
			return err
		}
		if held+n < len(l.buffer) {
			return nil // there was no more
		}
	}
}

// parse counts the responses in b, and keeps what begins another.
func (l *loop) parse(c *conn, b []byte) error {
	for len(b) > 0 {
		if c.skip > 0 {
			n := min(c.skip, len(b))
			b = b[n:]
			if c.skip -= n; c.skip == 0 {
				l.answered(c, c.status)
			}
			continue
		}
		f, err := l.config.Frame(b)
		if err != nil {
			return err
		}
		if f.Head == 0 {
			break
		}
		if c.count == 0 {
			return errUnasked
		}
		c.ending = f.Last
		if f.Status == http.StatusTooManyRequests {
			l.limited(b[:f.Head])
		}
		if whole := f.Head + f.Body; len(b) >= whole {
			l.verify(c, f, b)
			l.answered(c, f.Status)
			b = b[whole:]
		} else {
			c.skip, c.status = whole-len(b), f.Status
			b = nil
		}
	}
	c.rest = append(c.rest[:0], b...)
	return nil
}

// answered counts the response to the oldest request in flight.
func (l *loop) answered(c *conn, status int) {
	due := c.sent[c.first].due
	c.first = (c.first + 1) % len(c.sent)
	c.count--
	c.answers++
	c.since = l.now
	l.waiting--
	l.counts.Statuses[status]++
	l.counts.Latency.Record(time.Duration(l.now - due))
}

// limited keeps what the first 429 says about when to come back.
func (l *loop) limited(head []byte) {
	if l.counts.RetryAfter == "" {
		l.counts.RetryAfter = string(Field(head, retryField))
	}
	if l.config.StopAt429 {
		l.stop()
	}
}

// verify verifies some responses.
func (l *loop) verify(c *conn, f Frame, b []byte) {
	index := c.sent[c.first].index
	if l.config.Verify == nil || index%verifyEvery != 0 {
		return
	}
	l.counts.Verified++
	err := l.config.Verify(index, f.Status, b[:f.Head], b[f.Head:f.Head+f.Body])
	if err != nil && l.counts.Wrong == nil {
		l.counts.Wrong = fmt.Errorf("a response is wrong: %w", err)
	}
}
