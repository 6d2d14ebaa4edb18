package wire

import (
	"errors"
	"time"
)

// slack is how much later than wanted a read or write may time out.
const slack = 250 * time.Millisecond

// deadline is one of the two deadlines of a Conn. fasthttp moves each with every request, and
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

// SetReadDeadline is for the goroutine that reads.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if c.takenOver.Load() {
		return c.Conn.SetReadDeadline(t)
	}
	c.readBy.wanted = t
	return nil
}

// SetWriteDeadline is for the goroutine that writes.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	if c.takenOver.Load() {
		return c.Conn.SetWriteDeadline(t)
	}
	c.writeBy.wanted = t
	return nil
}

// SetDeadline is for the goroutine that reads and writes, until the connection is taken
// over: then it reaches the socket at once, from wherever it comes.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}
