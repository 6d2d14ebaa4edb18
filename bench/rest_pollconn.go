package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// pollTimeout is how long an answer may take. It is more than any that is worth waiting for,
// and bounds how long a poller can be held up.
const pollTimeout = 10 * time.Second

// pollConn is one connection of a poller. Who asks owns it until the request is written, then
// its reader does, until it is idle again.
type pollConn struct {
	address string
	dialer  net.Dialer
	socket  net.Conn // nil: it broke, and could not be renewed
	in      *bufio.Reader
	asked   chan time.Time // when the request was due that was written

	// The reader's:

	unsent error // why the request could not be written
	ending bool  // the server closes the connection behind this answer
}

func dialPollConn(ctx context.Context, address string, local netip.Addr) (*pollConn, error) {
	c := &pollConn{address: address, in: bufio.NewReader(nil), asked: make(chan time.Time, 1)}
	c.dialer.Timeout = pollTimeout
	if local.IsValid() {
		c.dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(local, 0))
	}
	var err error
	if c.socket, err = c.dialer.DialContext(ctx, "tcp", address); err != nil {
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	c.in.Reset(c.socket)
	return c, nil
}

// renew connects again. Without success the next request goes unanswered.
func (c *pollConn) renew() {
	c.close()
	socket, err := c.dialer.Dial("tcp", c.address)
	if err != nil {
		return
	}
	c.socket = socket
	c.in.Reset(socket)
}

func (c *pollConn) close() {
	if c.socket != nil {
		_ = c.socket.Close()
		c.socket = nil
	}
}

// ask writes a request and hands the connection to its reader.
func (c *pollConn) ask(request []byte, due time.Time) {
	c.unsent = net.ErrClosed
	if c.socket != nil {
		_ = c.socket.SetDeadline(time.Now().Add(pollTimeout)) // a socket without one fails
		_, c.unsent = c.socket.Write(request)
	}
	c.asked <- due
}

var (
	errAnswerHead    = errors.New("the answer is not HTTP/1.1")
	errAnswerUnsized = errors.New("the answer states no length")
)

// answer reads one answer to its end.
func (c *pollConn) answer() (status int, err error) {
	if c.unsent != nil {
		return 0, c.unsent
	}
	c.ending = false
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	const version = "HTTP/1.1 "
	if len(line) < len(version)+3 || string(line[:len(version)]) != version {
		return 0, errAnswerHead
	}
	if status, err = strconv.Atoi(string(line[len(version) : len(version)+3])); err != nil {
		return 0, errAnswerHead
	}
	length, err := c.readFields()
	if err != nil {
		return 0, err
	}
	if length < 0 && status != 204 && status != 304 {
		return 0, errAnswerUnsized
	}
	_, err = io.CopyN(io.Discard, c.in, max(length, 0))
	return status, err
}

// readFields reads the fields of a head to its end, and returns the length of the body that
// follows: -1 if there is none.
func (c *pollConn) readFields() (length int64, err error) {
	length = -1
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		name, value, _ := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case len(name) == 0:
			return length, nil
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.ParseInt(string(value), 10, 64); err != nil {
				return 0, errAnswerHead
			}
		case bytes.EqualFold(name, []byte("Connection")) && bytes.EqualFold(value, []byte("close")):
			c.ending = true
		}
	}
}
