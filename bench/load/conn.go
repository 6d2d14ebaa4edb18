package load

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"syscall"
	"time"
	"unsafe"
)

// conn is one connection of a thread.
type conn struct {
	fd      int // -1: none
	opening bool
	local   netip.Addr

	sent         []request // a ring of those in flight
	first, count int
	unsent       []byte // what the socket had no room for, of the script
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

// noneAtEnd is why requests failed that were in flight when the load gave up waiting.
const noneAtEnd = "no response before the end"

var (
	errTimeout  = fmt.Errorf("no response within %v", patience)
	errClosed   = errors.New("connection closed before the response")
	errUnasked  = errors.New("a response that was not asked for")
	retryField  = []byte("\r\nRetry-After: ")
	openingNews = uint32(syscall.EPOLLOUT | syscall.EPOLLERR | syscall.EPOLLHUP)
)

func (c *conn) shut() {
	if c.fd >= 0 {
		_ = syscall.Close(c.fd)
	}
	c.fd, c.opening, c.ending, c.first, c.count, c.skip = -1, false, false, 0, 0, 0
	c.answers, c.unsent, c.rest = 0, nil, c.rest[:0]
}

// open begins to connect.
func (l *loop) open(i int) error {
	c := &l.conns[i]
	family := syscall.AF_INET
	if l.config.Address.Addr().Is6() {
		family = syscall.AF_INET6
	}
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot open a socket: %w", err)
	}
	c.fd, c.opening = fd, true
	if c.local.IsValid() {
		const ipBindAddressNoPort = 24 // the port is chosen at connect: more can be used
		_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_IP, ipBindAddressNoPort, 1)
		if err := syscall.Bind(fd, sockaddr(netip.AddrPortFrom(c.local, 0))); err != nil {
			return fmt.Errorf("cannot connect from %v: %w", c.local, err)
		}
	}
	_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
	if err := syscall.Connect(fd, sockaddr(l.config.Address)); err != nil && !errors.Is(err, syscall.EINPROGRESS) {
		return fmt.Errorf("cannot connect: %w", err)
	}
	event := syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLOUT | syscall.EPOLLRDHUP | edgeTriggered, Fd: int32(i)}
	if err := syscall.EpollCtl(l.epoll, syscall.EPOLL_CTL_ADD, fd, &event); err != nil {
		return fmt.Errorf("cannot wait for a connection: %w", err)
	}
	return nil
}

// news handles what epoll tells of a connection.
func (l *loop) news(i int, events uint32) {
	c := &l.conns[i]
	if c.opening {
		if events&openingNews == 0 {
			return
		}
		if code, err := syscall.GetsockoptInt(c.fd, syscall.SOL_SOCKET, syscall.SO_ERROR); err != nil || code != 0 {
			l.broken(i, fmt.Errorf("cannot connect: %w", errors.Join(err, syscall.Errno(code))))
			return
		}
		c.opening = false
	}
	if err := c.flush(); err != nil {
		l.broken(i, err)
		return
	}
	if events&^syscall.EPOLLOUT == 0 {
		return
	}
	before := c.count
	err := l.read(c)
	answered := before - c.count
	if err == nil && events&syscall.EPOLLRDHUP != 0 {
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

// send writes so many requests, one after the other.
func (l *loop) send(i, count int, due int64) {
	c := &l.conns[i]
	if c.count == 0 {
		c.since = l.now
	}
	for count > 0 {
		text, n := l.config.Script.part(l.next, count)
		for k := range n {
			c.sent[(c.first+c.count+k)%len(c.sent)] = request{due, l.next + k}
		}
		c.count += n
		l.waiting += n
		count -= n
		l.next = (l.next + n) % l.config.Script.Len()
		if len(c.unsent) > 0 {
			c.unsent = append(c.unsent[:len(c.unsent):len(c.unsent)], text...)
		} else {
			c.unsent = text
		}
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
		// The call does not wait, so the scheduler need not know of it.
		n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(c.fd), uintptr(unsafe.Pointer(unsafe.SliceData(c.unsent))), uintptr(len(c.unsent)))
		switch errno {
		case 0:
			c.unsent = c.unsent[n:]
		case syscall.EAGAIN:
			return nil
		case syscall.EINTR:
		default:
			return fmt.Errorf("cannot send: %w", errno)
		}
	}
	return nil
}

// read takes what responses there are.
func (l *loop) read(c *conn) error {
	for {
		held := copy(l.buffer, c.rest)
		n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(c.fd), uintptr(unsafe.Pointer(&l.buffer[held])), uintptr(len(l.buffer)-held))
		switch {
		case errno == syscall.EAGAIN:
			return nil
		case errno == syscall.EINTR:
			continue
		case errno != 0:
			return fmt.Errorf("cannot receive: %w", errno)
		case n == 0:
			return errClosed
		}
		l.now = l.clock()
		l.counts.Bytes += int64(n)
		if err := l.parse(c, l.buffer[:held+int(n)]); err != nil {
			return err
		}
		if held+int(n) < len(l.buffer) {
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

// sockaddr is an address as the kernel takes it.
func sockaddr(a netip.AddrPort) syscall.Sockaddr {
	if a.Addr().Is4() {
		return &syscall.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &syscall.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}
