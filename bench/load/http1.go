package load

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"
)

// http1 is a connection of HTTP/1.1.
type http1 struct {
	net.Conn
	in    *bufio.Reader // of what is read of the connection
	most  int           // bytes of a body
	bytes int64         // of the response, so far
	why   error         // why no more of it can be read; nil: it can
	peek  [1]byte       // room for what nobody asked for
}

var (
	errNotHTTP = errors.New("the response is not HTTP/1.1")
	errHead    = fmt.Errorf("the head of the response is longer than %d KiB", headBytes>>10)
)

// headBytes is the most that a head, which comes before a body, may have.
const headBytes = 8 << 10

// openHTTP1 connects.
func (c *conn) openHTTP1() (link, error) {
	socket, err := c.load.config.Dial.Dial(c.phase.last, c.index, c.load.config.Address.String())
	if err != nil {
		return nil, err
	}
	h := &http1{Conn: socket, most: c.load.config.MostBytes}
	h.in = bufio.NewReaderSize(h, headBytes)
	return h, nil
}

func (h *http1) exchange(request []byte, response *fasthttp.Response, late time.Time) (int64, error) {
	h.bytes = 0
	err := h.SetDeadline(late)
	if err == nil {
		_, err = h.Write(request)
	}
	if err != nil {
		return 0, fmt.Errorf("cannot send: %w", plain(err))
	}
	err = response.ReadLimitBody(h.in, h.most)
	_, long := errors.AsType[*fasthttp.ErrSmallBuffer](err)
	switch {
	case err == nil:
		if h.in.Buffered() > 0 { // nobody asked for that
			response.SetConnectionClose()
		}
	case long:
		err = errHead
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
	case h.why == nil:
		err = errNotHTTP // what fasthttp says quotes the response
	case errors.Is(h.why, io.EOF):
		err = errClosed
	default:
		err = fmt.Errorf("cannot receive: %w", plain(h.why))
	}
	return h.bytes, err
}

// Read reads from the socket. It keeps the error, of which fasthttp tells not all.
func (h *http1) Read(b []byte) (n int, err error) {
	n, err = h.Conn.Read(b)
	h.bytes += int64(n)
	if err != nil {
		h.why = err
	}
	return n, err
}

func (h *http1) isClosed() (closed bool) {
	socket := h.Conn
	if secured, ok := socket.(*tls.Conn); ok {
		socket = secured.NetConn()
	}
	raw, err := socket.(syscall.Conn).SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			_, _, err := unix.Recvfrom(int(fd), h.peek[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
			closed = err != unix.EAGAIN
		})
	}
	return closed || err != nil
}
