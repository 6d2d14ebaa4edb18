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
// hands out exactly one checked request at a time: its head, then its body, then nothing
// until fasthttp asks for the next one, which it does after the answer was written. So a
// verdict kept here is always about the request being answered, and bytes behind a
// refused head are never executed.
//
// In place of a head it refuses, Read hands out a harmless request that ends the
// connection; the handler finds the verdict here and answers with that.
//
// The usual request, one head in one read, is checked where it lies in fasthttp's own
// buffer and not copied.
type conn struct {
	net.Conn
	peer        peer
	readTimeout time.Duration

	// Down to verdict all belongs to the goroutine that reads.

	held    []byte // read from the socket, not yet handed out
	ready   int    // how much of held is an accepted head
	body    int    // what is still to come of the current body
	verdict headVerdict

	takenOver atomic.Bool // the bytes belong to whoever took the connection over
	draining  atomic.Bool
	closed    atomic.Bool
	release   func(*conn) // gives the place of the connection back
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
		n, err = c.Conn.Read(p[:min(c.body, len(p))])
	}
	c.body -= n
	return n, err
}

// readHead waits for the next head. A peer that goes away or falls silent before the
// first byte of one is gone without an answer.
func (c *conn) readHead(p []byte) (int, error) {
	if len(c.held) == 0 && len(p) >= maxHeadBytes {
		n, err := c.Conn.Read(p)
		if n == 0 && err != nil {
			return 0, io.EOF
		}
		h, verdict := scanHead(p[:n])
		if verdict == headAccepted {
			c.body = h.body
			c.held = append(c.held[:0], p[h.bytes:n]...)
			return h.bytes, nil
		}
		c.held = append(c.held[:0], p[:n]...)
	}
	h, verdict := c.gatherHead()
	if verdict == headIncomplete {
		return 0, io.EOF
	}
	if verdict.refused() {
		return c.refuse(p, verdict), nil
	}
	c.ready, c.body = h.bytes, h.body
	return c.Read(p)
}

// gatherHead reads until held starts with a whole head. From the first byte on the rest
// has the read timeout, whatever it is cut into. headIncomplete means that the peer left
// before the first byte.
func (c *conn) gatherHead() (head, headVerdict) {
	timed := false
	for {
		if len(c.held) > 0 {
			if h, verdict := scanHead(c.held); verdict != headIncomplete {
				return h, verdict
			}
			if !timed {
				timed = true
				if err := c.SetReadDeadline(time.Now().Add(c.readTimeout)); err != nil {
					return head{}, headMalformed
				}
			}
		}
		if cap(c.held)-len(c.held) < minReadBytes {
			c.held = append(make([]byte, 0, max(2*len(c.held), 8*minReadBytes)), c.held...)
		}
		n, err := c.Conn.Read(c.held[len(c.held):cap(c.held)])
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
func (c *conn) takeOver() { c.takenOver.Store(true) }

// NetConn returns the socket itself. Its new owner may write to it directly, but reads
// and closes through the conn, which may hold bytes and counts connections.
func (c *conn) NetConn() net.Conn { return c.Conn }

// Close closes the connection and gives its place back. Only the first call counts.
func (c *conn) Close() error {
	if !c.closed.CompareAndSwap(false, true) {
		return net.ErrClosed
	}
	if c.draining.Load() {
		c.drain()
	}
	c.release(c)
	return c.Conn.Close()
}

func (c *conn) drain() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	if c.SetReadDeadline(time.Now().Add(drainTime)) == nil {
		// The bytes and the error are of no interest: either way the connection ends.
		_, _ = io.Copy(io.Discard, io.LimitReader(c.Conn, drainBytes))
	}
}
