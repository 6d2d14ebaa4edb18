package wire

import (
	"crypto/tls"
	"errors"
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
// limit, where each KiB of its fields counts as one more. The connection is then closed: so a client past its limit makes at most
// maxRefusals requests on each of the connections that it may make, and fewer where reading them takes longer.
const maxRefusals, refusalBytes = 10, 1 << 10

// Conn is one accepted connection. Until it is taken over, one goroutine reads and writes it.
type Conn struct {
	net.Conn // the socket, or TLS over it
	Peer     ratelimit.Peer

	handler Handler
	caps    *caps
	client  ratelimit.Client // whom it counts for; guarded by caps.mu
	socket  net.Conn
	secure  *secure // between TLS and the socket; nil: the connection is not encrypted
	plain   bool    // the peer speaks HTTP where it should speak TLS; of the goroutine that reads and writes

	read, write deadline
	scanner     scanner
	refusals    int // in a row; of the goroutine that reads and writes

	// readUntil is when the time for the bytes that it waits for is over, in nanoseconds since the caps were made; 0 while it waits for none.
	// No clock that is set changes their order.
	readUntil atomic.Int64
	takenOver atomic.Bool // its bytes are not HTTP any more
	detached  atomic.Bool // only its new owner reads, writes and closes it
	draining  atomic.Bool
	closed    atomic.Bool
	lost      atomic.Pointer[func()]
	ended     func() // nil: nobody is told; set before the connection gets a new owner
}

func newConn(socket net.Conn, peer ratelimit.Peer, caps *caps) *Conn {
	return &Conn{Conn: socket, Peer: peer, caps: caps, client: peer.Client, socket: socket}
}

// encrypt puts TLS over the socket: the first read shakes hands, within the time that a request has.
func (c *Conn) encrypt(config *tls.Config) {
	c.secure = &secure{Conn: c.socket, owner: c}
	c.secure.tls = tls.Server(c.secure, config)
	c.Conn = c.secure.tls
}

// Read reads from the socket, and notes what fasthttp will not tell of the bytes.
func (c *Conn) Read(p []byte) (int, error) {
	if c.takenOver.Load() {
		return c.receive(p)
	}
	if err := c.read.apply(c.socket.SetReadDeadline); err != nil {
		return 0, err
	}
	c.readUntil.Store(int64(c.read.wanted.Sub(c.caps.began)))
	n, err := c.receive(p)
	c.readUntil.Store(0)
	if n == 0 {
		c.scanner.timedOut = isTimeout(err)
		c.notePlain(err)
		return n, err
	}
	c.scanner.note(p[:n])
	return n, err
}

// receive reads what the peer has sent.
func (c *Conn) receive(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.secure != nil {
		c.secure.records.bring(n, n < len(p))
	}
	return n, err
}

// notePlain notes whether a read of TLS failed because the peer sent a request of HTTP as it is. It is answered so, too.
func (c *Conn) notePlain(err error) {
	methods := []string{"GET /", "HEAD ", "POST ", "PUT /", "DELET", "OPTIO"}
	if head, ok := errors.AsType[tls.RecordHeaderError](err); ok && slices.Contains(methods, string(head.RecordHeader[:])) {
		c.plain = true
		c.scanner.note(head.RecordHeader[:])
	}
}

// Write writes all of p, as long as the peer takes it, see inPieces. Once the connection is detached, a write that its deadline has ended is to be
// continued with the rest of p, over TLS too.
func (c *Conn) Write(p []byte) (n int, err error) {
	if c.detached.Load() {
		return c.send(p)
	}
	err = c.inPieces(func() (int, error) {
		taken, err := c.send(p[n:])
		n += taken
		return taken, err
	})
	return n, err
}

// send writes until the deadline of the socket.
func (c *Conn) send(p []byte) (int, error) {
	if c.secure != nil && !c.plain {
		return c.secure.write(p)
	}
	return c.socket.Write(p)
}

// Refused notes whether the present request, whose fields have so many bytes, is refused for its client's limit, and reports
// whether the connection is to end with the answer. A trusted proxy's connections stay: they
// carry the requests of other clients too.
func (c *Conn) Refused(refused bool, fieldBytes int) (end bool) {
	if !refused && c.secure != nil {
		c.secure.records.renew()
	}
	if !refused || c.Peer.Trusted {
		c.refusals = 0
		return false
	}
	c.refusals += 1 + fieldBytes/refusalBytes
	return c.refusals >= maxRefusals
}

// TakeOver lets every further byte through unnoted: the connection is a WebSocket.
func (c *Conn) TakeOver() {
	c.takenOver.Store(true)
	c.scanner = scanner{} // which holds on to fasthttp's buffer
}

// NetConn returns the socket itself, below TLS. It is closed through the Conn, which counts connections.
func (c *Conn) NetConn() net.Conn { return c.socket }

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

// AtEnd has f called when the connection ends, whoever owns it then. The goroutine that reads and writes calls it.
func (c *Conn) AtEnd(f func()) { c.ended = f }

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
	c.caps.forget(c)
	if lost := c.lost.Load(); lost != nil {
		(*lost)()
	}
	if c.ended != nil {
		c.ended()
	}
	return c.Conn.Close()
}

// drain reads on for a moment, so that the client gets the answer.
func (c *Conn) drain() {
	conn := c.Conn
	if c.plain {
		conn = c.socket
	}
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	if c.secure != nil {
		_ = c.socket.SetWriteDeadline(time.Now().Add(drainTime))
		_, _ = c.secure.flush() // the end, which is no more certain to come than the rest
	}
	if c.socket.SetReadDeadline(time.Now().Add(drainTime)) == nil {
		// The bytes and the error are of no interest: either way the connection ends.
		_, _ = io.Copy(io.Discard, io.LimitReader(conn, drainBytes))
	}
}
