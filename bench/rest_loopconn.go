package bench

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"syscall"
	"time"
	"unsafe"
)

// loadConn is one connection of a thread.
type loadConn struct {
	fd      int // -1: none
	opening bool
	local   netip.Addr

	asked        []loadAsked // a ring of those on the way
	first, count int
	unsent       []byte // what the socket had no room for, of the script
	answers      int    // since it was opened
	since        int64  // when it was answered last, or asked if nothing was on the way
	ending       bool   // the server closes it

	rest   []byte // the beginning of a head that is not there whole
	skip   int    // bytes of a body that are still to come
	status int    // of the answer that is skipped
}

// loadAsked is a request on the way.
type loadAsked struct {
	due     int64
	request int // of the script
}

func (c *loadConn) shut() {
	if c.fd >= 0 {
		_ = syscall.Close(c.fd)
	}
	c.fd, c.opening, c.ending, c.first, c.count, c.skip = -1, false, false, 0, 0, 0
	c.answers, c.unsent, c.rest = 0, nil, c.rest[:0]
}

// open begins to connect.
func (l *loadLoop) open(i int) error {
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
		const ipBindAddressNoPort = 24 // the port is chosen when it is known where it goes: more can be used
		_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_IP, ipBindAddressNoPort, 1)
		if err := syscall.Bind(fd, sockaddr(netip.AddrPortFrom(c.local, 0))); err != nil {
			return fmt.Errorf("cannot come from %v: %w", c.local, err)
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

// news is what epoll has to tell of a connection.
func (l *loadLoop) news(i int, events uint32) {
	c := &l.conns[i]
	if c.opening {
		if events&(syscall.EPOLLOUT|syscall.EPOLLERR|syscall.EPOLLHUP) == 0 {
			return
		}
		if code, err := syscall.GetsockoptInt(c.fd, syscall.SOL_SOCKET, syscall.SO_ERROR); err != nil || code != 0 {
			l.broken(i, fmt.Errorf("cannot connect: %w", errors.Join(err, syscall.Errno(code))))
			return
		}
		c.opening = false
	}
	if len(c.unsent) > 0 {
		if err := c.send(); err != nil {
			l.broken(i, err)
			return
		}
	}
	if events&^syscall.EPOLLOUT == 0 {
		return
	}
	before := c.count
	err := l.read(c)
	if l.config.Fresh {
		// The server closes it behind the answer.
		if err == io.EOF && c.answers > 0 && c.count == 0 {
			c.shut()
			l.again(i, 1)
			return
		}
	} else {
		answered := before - c.count
		if c.ending && c.count == 0 {
			c.shut() // who asks next opens another
			err = nil
		}
		l.again(i, answered)
	}
	if err != nil {
		l.broken(i, err)
	}
}

// again asks on a connection as many times as it was answered.
func (l *loadLoop) again(i, answered int) {
	if answered == 0 {
		return
	}
	if l.config.Rate > 0 {
		for range answered {
			l.ready = append(l.ready, i)
		}
		return
	}
	if l.now < l.until {
		l.ask(i, answered, l.now)
	}
}

// broken counts what goes unanswered because a connection broke. One that asks nothing is
// opened when it is asked for.
func (l *loadLoop) broken(i int, why error) {
	c := &l.conns[i]
	lost := c.count
	c.shut()
	l.waiting -= lost
	if lost > 0 {
		l.counts.fail(lost, why)
	}
	if l.failures += max(1, lost); l.failures > loadFailures || l.until == 0 {
		l.fault = why
		return
	}
	l.again(i, lost)
}

// ask writes so many requests, one behind the other.
func (l *loadLoop) ask(i, count int, due int64) {
	c := &l.conns[i]
	if c.fd < 0 {
		if err := l.open(i); err != nil {
			l.fault = err
			return
		}
	}
	if c.count == 0 {
		c.since = l.now
	}
	for count > 0 {
		text, n := l.config.Script.part(l.next, count)
		for k := range n {
			c.asked[(c.first+c.count+k)%len(c.asked)] = loadAsked{due, l.next + k}
		}
		c.count += n
		l.waiting += n
		count -= n
		l.next = (l.next + n) % len(l.config.Script.ends)
		if len(c.unsent) > 0 {
			c.unsent = append(c.unsent[:len(c.unsent):len(c.unsent)], text...)
		} else {
			c.unsent = text
		}
	}
	if c.opening {
		return
	}
	if err := c.send(); err != nil {
		l.broken(i, err)
	}
}

// send writes what is unsent, as far as there is room for it.
func (c *loadConn) send() error {
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
			return fmt.Errorf("cannot ask: %w", errno)
		}
	}
	return nil
}

// read takes what answers there are.
func (l *loadLoop) read(c *loadConn) error {
	for {
		held := copy(l.room, c.rest)
		if held == len(l.room) {
			return errAnswerHead
		}
		n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(c.fd), uintptr(unsafe.Pointer(&l.room[held])), uintptr(len(l.room)-held))
		switch {
		case errno == syscall.EAGAIN:
			return nil
		case errno == syscall.EINTR:
			continue
		case errno != 0:
			return fmt.Errorf("cannot read an answer: %w", errno)
		case n == 0:
			return io.EOF
		}
		l.now = l.clock()
		l.counts.Bytes += int64(n)
		if err := l.take(c, l.room[:held+int(n)]); err != nil {
			return err
		}
		if held+int(n) < len(l.room) && !l.config.Fresh {
			return nil // there was no more
		}
	}
}

var errUnasked = errors.New("there is an answer that nobody asked for")

// take counts the answers in b, and keeps what begins another.
func (l *loadLoop) take(c *loadConn, b []byte) error {
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
		if f.head == 0 {
			break
		}
		if c.count == 0 {
			return errUnasked
		}
		c.ending = f.last
		if whole := f.head + f.body; len(b) >= whole {
			l.check(c, f, b)
			l.answered(c, f.status)
			b = b[whole:]
		} else {
			c.skip, c.status = whole-len(b), f.status
			b = nil
		}
	}
	c.rest = append(c.rest[:0], b...)
	return nil
}

// answered counts the answer to the oldest request on the way.
func (l *loadLoop) answered(c *loadConn, status int) {
	due := c.asked[c.first].due
	c.first = (c.first + 1) % len(c.asked)
	c.count--
	c.answers++
	c.since = l.now
	l.waiting--
	l.failures = 0
	l.counts.Statuses[status]++
	if status == statusLimited && l.config.Polite {
		l.until = min(l.until, l.now)
	}
	l.counts.Latency.Record(time.Duration(l.now - due))
}

// check looks at some answers.
func (l *loadLoop) check(c *loadConn, f answerFrame, b []byte) {
	if l.config.Check == nil || l.fault != nil {
		return
	}
	request := c.asked[c.first].request
	if request%loadChecks != 0 {
		return
	}
	l.counts.Checked++
	if err := l.config.Check(l.config.Script.asked[request], f.status, b[:f.head], b[f.head:f.head+f.body]); err != nil {
		l.fault = fmt.Errorf("an answer is wrong: %w", err)
	}
}
