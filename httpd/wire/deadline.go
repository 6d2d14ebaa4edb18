package wire

import (
	"errors"
	"net"
	"time"
)

// slack is how much later than wanted a read or write may time out.
const slack = 250 * time.Millisecond

// A client has writeTimeout for each pieceBytes of an answer.
const pieceBytes, writeTimeout = 64 << 10, 10 * time.Second

// deadline is one of the two deadlines of a socket, until its Conn is detached. It belongs to the goroutine that reads and writes. fasthttp moves that of reads with every request, and
// moving a socket's costs as much as finding an account. So what is wanted is only noted, and the
// socket's is moved before a read or write, if it is earlier than that or later by more than slack.
type deadline struct {
	wanted time.Time // zero: none
	set    time.Time // on the socket
}

// apply comes before every read or write. set moves the socket's deadline.
func (d *deadline) apply(set func(time.Time) error) error {
	switch {
	case d.wanted.IsZero() && d.set.IsZero():
		return nil
	case d.wanted.IsZero():
		d.set = d.wanted
	case d.set.Before(d.wanted) || d.set.After(d.wanted.Add(slack)):
		d.set = d.wanted.Add(slack)
	default:
		return nil
	}
	return set(d.set)
}

// inPieces calls send until it does not end by its deadline, which is moved on as long as the peer takes pieceBytes within the time for them. Else it resets the
// connection: the peer must not take what it got for the whole.
func (c *Conn) inPieces(send func() (taken int, err error)) error {
	for {
		taken, err := c.sendBy(time.Now().Add(writeTimeout), send)
		if !isTimeout(err) {
			return err
		}
		// Linux says only of a third of a socket's buffer that it is free. So what room there is has to be asked for.
		more, err := c.sendBy(time.Now(), send)
		if !isTimeout(err) {
			return err
		}
		if taken+more < pieceBytes {
			c.abort()
			return err
		}
	}
}

// sendBy calls send with a deadline.
func (c *Conn) sendBy(t time.Time, send func() (int, error)) (int, error) {
	c.write.wanted = t
	if err := c.write.apply(c.socket.SetWriteDeadline); err != nil {
		return 0, err
	}
	return send()
}

// abort has the kernel drop what the peer has not taken, and reset the connection when it is closed.
func (c *Conn) abort() {
	if tcp, ok := c.socket.(interface{ SetLinger(int) error }); ok {
		_ = tcp.SetLinger(0) // at worst the end is a polite one
	}
}

// isTimeout reports whether err is a passed deadline.
func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// SetReadDeadline is for the goroutine that reads, until the connection is taken over: then it reaches the socket at once, from wherever it comes.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if c.takenOver.Load() {
		return c.socket.SetReadDeadline(t)
	}
	c.read.wanted = t
	return nil
}

// SetWriteDeadline is for the new owner of a connection that is detached. Until then each write has a time of its own.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	if c.detached.Load() {
		return c.socket.SetWriteDeadline(t)
	}
	return nil
}

// SetDeadline sets both.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}
