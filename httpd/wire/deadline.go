package wire

import "time"

// deadline is one of the two deadlines of a Conn. fasthttp moves each with every request, and
// moving a socket's costs as much as finding an account; nearly always nobody waits for the
// socket by then. So what is wanted is only noted, and the socket keeps an earlier deadline:
// should that pass while somebody waits, the socket is given the wanted one and the waiting
// goes on.
type deadline struct {
	wanted time.Time // zero: none
	set    time.Time // on the socket
}

// before makes sure that the socket gives up no later than wanted. It comes before every
// read or write.
func (d *deadline) before(set func(time.Time) error) error {
	if d.wanted.IsZero() == d.set.IsZero() && !d.set.After(d.wanted) {
		return nil
	}
	return d.move(set)
}

// goOn reports whether a read or write that ended with err is to be tried again: the
// socket gave up before the time that was wanted.
func (d *deadline) goOn(err error, set func(time.Time) error) bool {
	return err != nil && isTimeout(err) && d.set.Before(d.wanted) && time.Now().Before(d.wanted) && d.move(set) == nil
}

func (d *deadline) move(set func(time.Time) error) error {
	d.set = d.wanted
	return set(d.wanted)
}

// receive reads from the socket until the wanted deadline.
func (c *Conn) receive(p []byte) (n int, err error) {
	if err = c.readBy.before(c.Conn.SetReadDeadline); err != nil {
		return 0, err
	}
	for {
		if n, err = c.Conn.Read(p); n > 0 || !c.readBy.goOn(err, c.Conn.SetReadDeadline) {
			return n, err
		}
	}
}

// send writes to the socket until the wanted deadline.
func (c *Conn) send(p []byte) (n int, err error) {
	if err = c.writeBy.before(c.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	for {
		m, err := c.Conn.Write(p[n:])
		if n += m; !c.writeBy.goOn(err, c.Conn.SetWriteDeadline) {
			return n, err
		}
	}
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
	if c.takenOver.Load() {
		return c.Conn.SetDeadline(t)
	}
	c.readBy.wanted, c.writeBy.wanted = t, t
	return nil
}
