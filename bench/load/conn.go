package load

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"

	"ledgerd/engine/ledger/wait"
)

// conn is one connection. One goroutine uses it at a time.
type conn struct {
	load     *Load
	index    int
	socket   net.Conn // nil: none
	in       *bufio.Reader
	response fasthttp.Response
	proven   bool // there was a response since it was opened

	peek [1]byte // room for what nobody asked for

	phase *phase // that waits for a response
	bytes int64  // of the response, so far
	why   error  // why no more of it can be read; nil: it can
}

var (
	errTimeout = errors.New("no response within the timeout")
	errAtEnd   = errors.New("no response before the end")
	errClosed  = errors.New("connection closed before the response")
	errNotHTTP = errors.New("the response is not HTTP/1.1")
	errHead    = fmt.Errorf("the head of the response is longer than %d KiB", headBytes>>10)
)

const (
	// headBytes is the most that a head, which comes before a body, may have.
	headBytes = 8 << 10
	// pause is how long a connection rests after a failure without any response.
	pause = 100 * time.Millisecond
)

// ask sends requests and counts what comes of each until the phase sends no more.
func (c *conn) ask(p *phase) {
	c.phase = p
	if p.Rate == 0 {
		_ = wait.Sleep(p.ctx, p.Ramp*time.Duration(c.index)/time.Duration(len(p.conns)))
	}
	for idle := true; ; idle = p.Rate > 0 {
		due, more := p.take()
		if !more {
			return
		}
		// A server closes connections that are idle. In a closed loop they are so between phases alone, and looking takes a call of the kernel.
		if idle && c.socket != nil && c.isClosed() {
			c.shut()
		}
		script := p.config.Script
		index := int((p.next.Add(1) - 1) % uint64(len(script)))
		err := c.exchange(script[index])
		c.count(due, index, err)
		if err == nil && !c.response.ConnectionClose() && c.in.Buffered() == 0 { // there may be bytes that nobody asked for
			continue
		}
		c.shut()
		if err != nil && !c.proven {
			_ = wait.Sleep(p.ctx, pause)
		}
	}
}

// exchange sends a request and reads the response to it.
func (c *conn) exchange(request []byte) error {
	c.bytes, c.why = 0, nil
	if c.socket == nil {
		if err := c.open(); err != nil && (c.phase.last.Err() != nil || !time.Now().Before(c.phase.until)) { // a dialer's deadline may be told before its context's
			return errAtEnd
		} else if err != nil {
			return fmt.Errorf("cannot connect: %w", plain(err))
		}
	}
	late, timeout := time.Now().Add(c.load.config.Timeout), errTimeout
	if c.phase.until.Before(late) {
		late, timeout = c.phase.until, errAtEnd
	}
	err := c.socket.SetDeadline(late)
	if err == nil {
		_, err = c.socket.Write(request)
	}
	if err != nil {
		return fmt.Errorf("cannot send: %w", plain(err))
	}
	err = c.response.Read(c.in)
	_, long := errors.AsType[*fasthttp.ErrSmallBuffer](err)
	switch {
	case err == nil:
		c.proven = true
		return nil
	case long:
		return errHead
	case c.why == nil:
		return errNotHTTP // what fasthttp says quotes the response
	case errors.Is(c.why, os.ErrDeadlineExceeded):
		return timeout
	case errors.Is(c.why, io.EOF):
		return errClosed
	}
	return fmt.Errorf("cannot receive: %w", plain(c.why))
}

// open connects.
func (c *conn) open() (err error) {
	c.proven = false
	if c.socket, err = c.load.config.Dial.Dial(c.phase.last, c.index, c.load.config.Address.String()); err != nil {
		c.socket = nil // not a typed one
		return err
	}
	if c.in == nil {
		c.in = bufio.NewReaderSize(c, headBytes)
	}
	c.in.Reset(c)
	return nil
}

// shut closes the connection. The next request opens it again.
func (c *conn) shut() {
	if c.socket != nil {
		_ = c.socket.Close()
		c.socket = nil
	}
}

// isClosed reports whether the server has closed the connection, on which nothing is in flight.
func (c *conn) isClosed() (closed bool) {
	socket := c.socket
	if secured, ok := socket.(*tls.Conn); ok {
		socket = secured.NetConn()
	}
	raw, err := socket.(syscall.Conn).SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			_, _, err := unix.Recvfrom(int(fd), c.peek[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
			closed = err != unix.EAGAIN
		})
	}
	return closed || err != nil
}

// Read reads from the socket. It keeps the error, of which fasthttp tells not all.
func (c *conn) Read(b []byte) (n int, err error) {
	n, err = c.socket.Read(b)
	c.bytes += int64(n)
	if err != nil {
		c.why = err
	}
	return n, err
}

// plain returns what the kernel said, without the addresses in which each connection differs.
func plain(err error) error {
	if kernel := syscall.Errno(0); errors.As(err, &kernel) {
		return kernel
	}
	return err
}

// count counts what came of a request.
func (c *conn) count(due time.Duration, index int, err error) {
	l, took := c.load, time.Since(c.phase.from)-due
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.counts
	n.Bytes += c.bytes
	if err != nil {
		n.Errors[err.Error()]++
		return
	}
	status := c.response.StatusCode()
	n.Statuses[status]++
	n.Latency.Record(took)
	if status == http.StatusNotFound && l.config.Learned {
		n.Gone++
	}
	if status == http.StatusTooManyRequests {
		n.RetryAfter = cmp.Or(n.RetryAfter, string(c.response.Header.Peek("Retry-After")))
		if l.config.StopAt429 {
			c.phase.stop()
		}
	}
	if l.config.Verify != nil && index%l.config.VerifyEvery == 0 {
		if err := l.config.Verify(c.index, index, &c.response); err != nil {
			n.Wrong[err.Error()]++
		}
	}
}
