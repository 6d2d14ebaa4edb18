package wire

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"ledgerd/httpd/ratelimit"
)

// How long, and for how many bytes, the rest of a refused request is read before the
// connection is closed. Without that the kernel answers unread bytes with a reset, which
// can overtake the answer.
const (
	drainTime  = time.Second
	drainBytes = 1 << 20
)

// maxRefusals is how many requests in a row a connection may have refused for its client's
// limit. The connection is then closed, and goes on counting against the client's cap for
// refusalPenalty: so a client past its limit makes at most cap × maxRefusals requests in that time.
const (
	maxRefusals    = 10
	refusalPenalty = time.Second
)

// Conn is one accepted connection. Until it is taken over, one goroutine reads and writes it.
type Conn struct {
	net.Conn
	Peer     ratelimit.Peer
	listener *listener

	// Down to refusals all belongs to the goroutine that reads and writes.

	readBy, writeBy deadline
	since           received // the last write
	heard           bool     // the peer has sent anything at all
	bareLFs         int      // line feeds without a carriage return that no body explains yet
	last            byte     // that was read
	lineBytes       int      // read since the last line feed
	refusals        int      // in a row

	// readUntil is when the time for the bytes that it waits for is over, in nanoseconds since the listener began; 0 while it waits for none.
	// No clock that is set changes their order.
	readUntil atomic.Int64
	penalized atomic.Bool // it goes on counting for a while after its end
	takenOver atomic.Bool // it is read and written by whoever took it over
	detached  atomic.Bool // only its new owner closes it
	draining  atomic.Bool
	closed    atomic.Bool
	lost      atomic.Pointer[func()]
}

// received describes the bytes read since the last write, where fasthttp cannot tell after it
// gave up a request.
type received struct {
	bytes    int
	isHead   bool // they begin with the method HEAD
	timedOut bool // no more of them came in time
}

// Read reads from the socket, and notes what fasthttp will not tell of the bytes.
func (c *Conn) Read(p []byte) (int, error) {
	if c.takenOver.Load() {
		return c.Conn.Read(p)
	}
	if err := c.readBy.apply(c.Conn.SetReadDeadline); err != nil {
		return 0, err
	}
	c.readUntil.Store(int64(c.readBy.wanted.Sub(c.listener.began)))
	n, err := c.Conn.Read(p)
	c.readUntil.Store(0)
	if n == 0 {
		c.since.timedOut = isTimeout(err)
		answerPlain(err)
		return n, err
	}
	c.heard = true
	if c.since.bytes == 0 {
		c.since.isHead = bytes.HasPrefix(p[:n], []byte("HEAD "))
	}
	c.since.bytes += n
	if end := bytes.LastIndexByte(p[:n], '\n'); end >= 0 {
		c.lineBytes = n - end - 1
	} else {
		c.lineBytes += n
	}
	c.bareLFs += bareLFs(p[:n], c.last)
	c.last = p[n-1]
	return n, err
}

// answerPlain tells a client that speaks HTTP without TLS, which a read noticed, what is wrong.
func answerPlain(err error) {
	const body = `{"error":"Invalid request parameters","details":"this port speaks HTTPS; the request was sent without TLS"}`
	methods := []string{"GET /", "HEAD ", "POST ", "PUT /", "DELET", "OPTIO"}
	plain, ok := errors.AsType[tls.RecordHeaderError](err)
	if ok && plain.Conn != nil && slices.Contains(methods, string(plain.RecordHeader[:])) {
		// The connection ends whether the client reads this or not.
		_, _ = fmt.Fprintf(plain.Conn, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
}

// bareLFs counts the line feeds that no carriage return precedes.
func bareLFs(b []byte, before byte) (n int) {
	for {
		i := bytes.IndexByte(b, '\n')
		switch {
		case i < 0:
			return n
		case i > 0:
			before = b[i-1]
		}
		if before != '\r' {
			n++
		}
		before, b = '\n', b[i+1:]
	}
}

// explains reports whether the bare line feeds read so far are all in the body of the present
// request. One elsewhere may be the end of a request line, which fasthttp takes for a CRLF; where
// several requests came together it may also be a later one's, which then is refused with this one.
func (c *Conn) explains(body []byte) bool {
	if c.bareLFs > 0 {
		c.bareLFs -= bareLFs(body, '\n')
	}
	return c.bareLFs <= 0
}

// Write writes to the socket.
func (c *Conn) Write(p []byte) (int, error) {
	if c.takenOver.Load() {
		return c.Conn.Write(p)
	}
	c.since = received{}
	if err := c.writeBy.apply(c.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// isTimeout reports whether err is a passed deadline.
func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// Refused notes whether the present request is refused for its client's limit, and reports
// whether the connection is to end with the answer. A trusted proxy's connections stay: they
// carry the requests of other clients too.
func (c *Conn) Refused(refused bool) (end bool) {
	if !refused || c.Peer.Trusted {
		c.refusals = 0
		return false
	}
	if c.refusals++; c.refusals < maxRefusals {
		return false
	}
	c.penalized.Store(true)
	return true
}

// TakeOver lets every further byte through unnoted: the connection is a WebSocket.
func (c *Conn) TakeOver() { c.takenOver.Store(true) }

// NetConn returns the socket itself, below TLS. It is closed through the Conn, which counts connections.
func (c *Conn) NetConn() net.Conn {
	if t, ok := c.Conn.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c.Conn
}

// Encrypted reports whether the connection is one of TLS: a write to it that ends early, at its deadline, is its last.
func (c *Conn) Encrypted() bool {
	_, ok := c.Conn.(*tls.Conn)
	return ok
}

// detached is a connection as its new owner sees it, see Detach.
type detached struct{ *Conn }

// Detach hands the connection to a new owner, who alone can close it from here on. It is
// called by a hijacker that returns while the connection lives on: fasthttp closes what is
// hijacked then, and takes its buffers back.
func (c *Conn) Detach() net.Conn {
	c.detached.Store(true)
	c.lost.Store(nil)
	return detached{c}
}

// IfLost has f called when the connection ends without having been detached: its answer may
// never have been written, and then no hijacker is called.
func (c *Conn) IfLost(f func()) { c.lost.Store(&f) }

// Close closes the connection of the new owner.
func (d detached) Close() error { return d.end() }

// Close closes the connection, unless it belongs to a new owner.
func (c *Conn) Close() error {
	if c.detached.Load() {
		return nil
	}
	return c.end()
}

// end closes the connection and stops counting it. Only the first call counts.
func (c *Conn) end() error {
	if !c.closed.CompareAndSwap(false, true) {
		return net.ErrClosed
	}
	if c.draining.Load() {
		c.drain()
	}
	c.listener.forget(c)
	if lost := c.lost.Load(); lost != nil {
		(*lost)()
	}
	return c.Conn.Close()
}

// drain reads on for a moment, so that the client gets the answer.
func (c *Conn) drain() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	if c.Conn.SetReadDeadline(time.Now().Add(drainTime)) == nil {
		// The bytes and the error are of no interest: either way the connection ends.
		_, _ = io.Copy(io.Discard, io.LimitReader(c.Conn, drainBytes))
	}
}
