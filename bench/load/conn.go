package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger/wait"
)

// conn is one connection. One goroutine uses it at a time.
type conn struct {
	load     *Load
	index    int
	link     link // nil: it is not open
	response fasthttp.Response
	proven   bool // there was a response since it was opened

	phase *phase // that waits for a response
	bytes int64  // of the response, so far
}

// link is an open connection of a protocol, over which one request is sent at a time.
type link interface {
	// exchange sends a request, and returns how many bytes came of the response to it, until a time at most. The response is one that closes the
	// connection where nothing can be asked over it any more. A body that is longer than the load keeps is fasthttp.ErrBodyTooLarge.
	exchange(request []byte, response *fasthttp.Response, late time.Time) (bytes int64, err error)
	// isClosed reports whether the server has closed the connection, on which nothing is in flight.
	isClosed() bool
	Close() error
}

var (
	errTimeout = errors.New("no response within the timeout")
	errAtEnd   = errors.New("no response before the end")
	errClosed  = errors.New("connection closed before the response")
)

// pause is how long a connection rests after a failure without any response.
const pause = 100 * time.Millisecond

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
		if idle && c.link != nil && c.link.isClosed() {
			c.shut()
		}
		script := p.config.Script
		index := int((p.next.Add(1) - 1) % uint64(len(script)))
		err := c.exchange(script[index])
		c.count(due, index, err)
		if err == nil && !c.response.ConnectionClose() {
			continue
		}
		c.shut()
		if err != nil && !c.proven {
			_ = wait.Sleep(p.ctx, pause)
		}
	}
}

// exchange sends a request and reads the response to it.
func (c *conn) exchange(request []byte) (err error) {
	c.bytes = 0
	if c.link == nil {
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
	c.bytes, err = c.link.exchange(request, &c.response, late)
	if errors.Is(err, fasthttp.ErrBodyTooLarge) {
		return fmt.Errorf("the body of the response is longer than %d MiB", c.load.config.MostBytes>>20)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		return timeout
	}
	c.proven = c.proven || err == nil
	return err
}

// open connects.
func (c *conn) open() (err error) {
	c.proven = false
	if c.load.config.HTTP2 {
		c.link, err = c.openHTTP2()
	} else {
		c.link, err = c.openHTTP1()
	}
	return err
}

// shut closes the connection. The next request opens it again.
func (c *conn) shut() {
	if c.link != nil {
		_ = c.link.Close()
		c.link = nil
	}
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
