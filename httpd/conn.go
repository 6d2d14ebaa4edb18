package httpd

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// How long, and for how many bytes, the rest of a refused request is read before the
// connection is closed. Without that the kernel answers unread bytes with a reset, which
// can overtake the answer.
const (
	drainTime  = time.Second
	drainBytes = 1 << 20
)

// conn stands between the socket and fasthttp, which normalises and accepts much. Read
// hands out whole checked requests only: as many heads without a body as one read brought,
// see scanBatch, or one head and then its body. fasthttp asks for more when all of them are
// answered, and writes the answers when it has to ask, so those of a batch leave together.
//
// A batch ends before a head that is refused. In place of that Read hands out, alone, a
// harmless request that ends the connection; the handler finds the verdict here and answers
// with that. So a verdict kept here is always about the request being answered, and bytes
// behind a refused head are never executed.
//
// Heads that are whole in one read are checked where they lie in fasthttp's own buffer and
// not copied. One that came alone may be answered there and then, and Read goes on; nothing
// is waiting to be written when it reads a head.
type conn struct {
	net.Conn
	peer     peer
	timeouts timeouts

	// Down to verdict all belongs to the goroutine that reads and writes.

	readBy, writeBy deadline

	held    []byte // read from the socket, not yet handed out
	ready   int    // how much of held is accepted heads
	body    int    // what is still to come of the current body
	verdict headVerdict
	begun   begun // the exchange of the head that was handed out

	takenOver atomic.Bool // the bytes belong to whoever took the connection over
	detached  atomic.Bool // only its new owner closes it
	draining  atomic.Bool
	closed    atomic.Bool
	release   func(*conn) // gives the place of the connection back
	lost      atomic.Pointer[func()]
	heads     int         // that were asked for; the reader's
	cohort    int         // the newcomers it is one of until it is answered
	answered  atomic.Bool // its first request, or there will be none
	settled   func(cohort int)

	direct    func(c *conn, head []byte) directOutcome // nil: fasthttp answers everything
	answering atomic.Bool                              // directly: it is not idle, whatever fasthttp says
	stopped   *atomic.Bool                             // no more requests are to come
}

// What fasthttp sees of a refused request. HEAD stays HEAD, so that no body is sent.
var (
	refusedGet  = []byte("GET / HTTP/1.1\r\nHost: refused\r\nConnection: close\r\n\r\n")
	refusedHead = []byte("HEAD / HTTP/1.1\r\nHost: refused\r\nConnection: close\r\n\r\n")
)

// Read implements the rules above. p must hold maxHeadBytes when a head is awaited for
// the head not to be copied.
func (c *conn) Read(p []byte) (int, error) {
	switch {
	case c.takenOver.Load():
		if len(c.held) > 0 {
			return c.hand(p, len(c.held)), nil
		}
		c.held = nil // its array would stay as long as the connection
		return c.Conn.Read(p)
	case c.ready > 0:
		n := c.hand(p, c.ready)
		c.ready -= n
		return n, nil
	case c.body > 0:
		return c.readBody(p)
	case c.verdict.refused():
		return 0, io.EOF
	}
	return c.readHead(p)
}

// hand copies up to n held bytes to p.
func (c *conn) hand(p []byte, n int) int {
	n = copy(p, c.held[:n])
	c.held = c.held[n:]
	return n
}

func (c *conn) readBody(p []byte) (n int, err error) {
	if len(c.held) > 0 {
		n = c.hand(p, min(c.body, len(c.held)))
	} else {
		n, err = c.receive(p[:min(c.body, len(p))])
	}
	c.body -= n
	return n, err
}

// readHead waits for the next head and hands out what came with it. A peer that goes away
// or falls silent before the first byte of one is gone without an answer.
func (c *conn) readHead(p []byte) (int, error) {
	if c.heads++; c.heads == 2 {
		c.settle()
	}
	patience := c.timeouts.idle
	if c.heads == 1 {
		patience = c.timeouts.read
	}
	c.readBy.in(patience)
	for len(c.held) == 0 && len(p) >= maxHeadBytes {
		n, err := c.receive(p)
		if n == 0 && err != nil {
			return 0, io.EOF
		}
		h, _ := scanBatch(p[:n])
		if h.plain && h.bytes == n && c.mayAnswer() {
			answered, err := c.answer(p[:n])
			if err != nil {
				return 0, err
			}
			if answered {
				c.readBy.in(patience)
				continue
			}
		}
		c.awaitBody(h.body)
		c.held = append(c.held[:0], p[h.bytes:n]...)
		if h.bytes > 0 {
			return h.bytes, nil
		}
		break
	}
	h, verdict := c.gatherHead()
	if verdict == headIncomplete {
		return 0, io.EOF
	}
	if verdict.refused() {
		return c.refuse(p, verdict), nil
	}
	c.ready = h.bytes
	c.awaitBody(h.body)
	return c.Read(p)
}

// awaitBody notes what follows the head that is handed out: it has the read timeout too.
func (c *conn) awaitBody(bytes int) {
	if c.body = bytes; bytes > 0 {
		c.readBy.in(c.timeouts.read)
	}
}

// gatherHead reads until held starts with a whole head, and returns what it starts with. From the first byte on the rest
// has the read timeout, whatever it is cut into. headIncomplete means that the peer left
// before the first byte.
func (c *conn) gatherHead() (head, headVerdict) {
	timed := false
	for {
		if len(c.held) > 0 {
			if h, verdict := scanBatch(c.held); verdict != headIncomplete {
				return h, verdict
			}
			if !timed {
				timed = true
				c.readBy.in(c.timeouts.read)
			}
		}
		if cap(c.held)-len(c.held) < minReadBytes {
			c.held = append(make([]byte, 0, max(2*len(c.held), 8*minReadBytes)), c.held...)
		}
		n, err := c.receive(c.held[len(c.held):cap(c.held)])
		c.held = c.held[:len(c.held)+n]
		switch {
		case n > 0 || err == nil:
		case len(c.held) == 0:
			return head{}, headIncomplete
		case isTimeout(err):
			return head{}, headTimeout
		default:
			return head{}, headMalformed
		}
	}
}

// minReadBytes is the least room gatherHead offers the socket.
const minReadBytes = 512

// isTimeout reports whether err is a passed deadline.
func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// refuse remembers the verdict and hands out a stand-in for the refused request.
func (c *conn) refuse(p []byte, verdict headVerdict) int {
	standIn := refusedGet
	if bytes.HasPrefix(c.held, []byte("HEAD ")) {
		standIn = refusedHead
	}
	c.verdict = verdict
	c.held, c.ready = standIn, len(standIn)
	c.drainOnClose()
	n := c.hand(p, c.ready)
	c.ready -= n
	return n
}

// drainOnClose makes Close read on for a moment, so that the client gets the answer.
func (c *conn) drainOnClose() { c.draining.Store(true) }

// takeOver lets every further byte through unchecked: the connection is a WebSocket.
func (c *conn) takeOver() {
	c.takenOver.Store(true)
	c.settle()
}

// settle notes that the connection is no newcomer any more. Only the first call counts.
func (c *conn) settle() {
	if c.answered.CompareAndSwap(false, true) {
		c.settled(c.cohort)
	}
}

// NetConn returns the socket itself. Its new owner may write to it directly, but reads
// and closes through the conn, which may hold bytes and counts connections.
func (c *conn) NetConn() net.Conn { return c.Conn }

// detached is a connection as its new owner sees it, see Detach.
type detached struct{ *conn }

// Detach hands the connection to a new owner, who alone can close it from here on. It is
// called by a hijacker that returns while the connection lives on: fasthttp closes what is
// hijacked then, and takes its buffers back.
func (c *conn) Detach() net.Conn {
	c.detached.Store(true)
	c.lost.Store(nil)
	return detached{c}
}

// IfLost has f called when the connection ends without having been detached: its answer may
// never have been written, and then no hijacker is called.
func (c *conn) IfLost(f func()) { c.lost.Store(&f) }

// Close closes the connection of the new owner.
func (d detached) Close() error { return d.end() }

// Close closes the connection, unless it belongs to somebody else or is being answered by
// ourselves.
func (c *conn) Close() error {
	if c.answering.Load() {
		return nil
	}
	return c.closeNow()
}

// closeNow is Close for who does not wait for an answer.
func (c *conn) closeNow() error {
	if c.detached.Load() {
		return nil
	}
	return c.end()
}

// end closes the connection and gives its place back. Only the first call counts.
func (c *conn) end() error {
	if !c.closed.CompareAndSwap(false, true) {
		return net.ErrClosed
	}
	if c.draining.Load() {
		c.drain()
	}
	c.settle()
	c.release(c)
	if lost := c.lost.Load(); lost != nil {
		(*lost)()
	}
	return c.Conn.Close()
}

func (c *conn) drain() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	if c.Conn.SetReadDeadline(time.Now().Add(drainTime)) == nil {
		// The bytes and the error are of no interest: either way the connection ends.
		_, _ = io.Copy(io.Discard, io.LimitReader(c.Conn, drainBytes))
	}
}
