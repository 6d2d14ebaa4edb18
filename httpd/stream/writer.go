package stream

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/stream/frame"
)

const (
	// drainTime is how long a connection that ends goes on with what was published before.
	drainTime = time.Second
	// closeWait is how long the peer may take to answer a close frame.
	closeWait = time.Second
)

// tally says what some frames hold.
type tally struct {
	frames    int
	seq       ledger.Seq    // the newest; 0 if they hold no updates
	published time.Duration // when the newest was, see Hub.now; 0: not known
}

func (t *tally) add(more tally) {
	t.frames += more.frames
	t.seq, t.published = max(t.seq, more.seq), max(t.published, more.published)
}

// batch is some whole frames that are written at once.
type batch struct {
	data []byte
	tally
}

// hasRoom reports whether a frame still fits that takes less than so many bytes.
func (b *batch) hasRoom(frameBytes int) bool { return cap(b.data)-len(b.data) >= frameBytes }

// add appends a packet.
func (b *batch) add(p *packet) {
	b.data = append(b.data, p.data...)
	b.tally.add(p.tally)
}

// take takes over its data to which a part of an emission was appended, if that has a frame.
func (b *batch) take(data []byte, e *emission, part int) {
	if len(data) > len(b.data) {
		b.tally.add(e.tally(part))
	}
	b.data = data
}

// writer is what the writing half of a connection has of its own.
type writer struct {
	wakes    atomic.Int64  // since the writer began to run; 0: it does not. Once the connection has ended it stays above 0
	over     chan struct{} // closed when the last was written
	farewell atomic.Bool   // the close frame is written, and nothing follows it
	at       cursor
	sent     ledger.Seq // the newest seq the client received, or knew
	missed   *backlog   // what is being written; nil: none
	timers   timers
	ticks    atomic.Bool // tick is to be called every heartbeat; see scheduleTicks
}

// startWriter makes the writer, which was marked as running until now, check whether something waits.
func (c *connection) startWriter() {
	c.timers.pinged, c.timers.alarm = c.hub.now(), time.AfterFunc(pingInterval, c.wake)
	if !c.wakes.CompareAndSwap(1, 0) { // something waits
		go c.write()
	}
}

// wake starts the writer, or makes a running writer check once more before it ends.
func (c *connection) wake() {
	if c.wakes.Add(1) == 1 {
		go c.write()
	}
}

// write is the writer's goroutine, which runs only as long as there is something to do: asleep it would
// keep a stack, which is most of what an idle connection costs. It writes what the ring it follows holds
// and what waits in the outbox, keeps the peer awake, and ends with the connection's close frame.
// Afterwards the reader is unblocked.
//
// It alone writes to the socket after the handshake, and always whole frames: pings, pongs
// and the close frame pass through it like everything else. There is one at a time. So control
// frames never land inside a data frame, many frames share one write, and nothing follows the close frame.
func (c *connection) write() {
	sleeps := false
	defer func() {
		if p := recover(); p != nil { // the connection ends, the process goes on
			c.hub.panicked(p)
			_ = c.conn.Close()
		}
		if !sleeps { // and no other starts
			c.timers.alarm.Stop()
			close(c.over)
		}
	}()
	for !sleeps {
		wakes := c.wakes.Load()
		if err := c.writeUntilIdle(); err != nil {
			c.finish(err)
			return
		}
		c.timers.alarm.Reset(c.timers.due - c.hub.now())
		sleeps = c.wakes.CompareAndSwap(wakes, 0)
	}
}

// writeUntilIdle writes until nothing waits. As an error it returns how the connection ends.
func (c *connection) writeUntilIdle() error {
	var last ledger.Opt[position] // the head when the connection was seen to end
	for {
		if err := c.runDue(c.hub.now()); err != nil {
			return err
		}
		// The head comes first: what was put before it moved there is then seen in the outbox,
		// and so nothing is written that belongs after an answer.
		limit := c.at.head()
		t := c.outbox.take(c.at.at)
		if t.run != nil || t.frames > 0 {
			if err := c.writeTaken(&t); err != nil {
				return err
			}
			continue
		}
		if t.ending != nil {
			if t.ending.atOnce() {
				return t.ending
			}
			if !last.Known {
				last = ledger.Some(limit)
			}
			limit = last.Value
		}
		if t.until != nil && t.until.at < limit.at {
			limit = *t.until
		}
		wrote, err := c.writeRing(limit)
		switch {
		case err != nil:
			return err
		case wrote || t.until != nil: // the head was read before it came
		case t.ending != nil:
			return t.ending
		default:
			return nil
		}
	}
}

// writeTaken does what the outbox says.
func (c *connection) writeTaken(t *taken) error {
	if t.run != nil {
		return t.run()
	}
	if t.large != nil {
		defer c.outbox.written(t.large)
	} else {
		defer freeBatch(c.hub.memory, t.room)
	}
	return c.writeOnce(t.batch)
}

// jumpShare is the part of its ring by which a conflating subscriber lags that goes on with a digest.
const jumpShare = 4

// writeRing writes the next frames of the ring up to a limit, if there are any.
func (c *connection) writeRing(limit position) (wrote bool, err error) {
	frames, to, ok := c.at.next(limit)
	if c.outbox.jump != nil && c.at.at < limit.at && (!ok || c.at.lagsBy(jumpShare)) {
		if jumped, err := c.outbox.jump(); jumped {
			return true, err
		}
	}
	switch {
	case !ok:
		return false, &endSlow
	case len(frames) == 0:
		return false, nil
	}
	b := batch{frames, to.tally}
	b.frames -= c.at.frames
	if err := c.writeOnce(b); err != nil {
		return false, err
	}
	c.at.position = to
	return true, nil
}

// writeLooks is how often a blocked write checks within writeTimeout whether the socket
// has taken any byte.
const writeLooks = 50

// writeOnce writes whole frames. Its error is how the connection ends if nothing more is to be written before that, or drainTime is over.
func (c *connection) writeOnce(b batch) error {
	if err := c.writeWhole(b); err != nil {
		return err
	}
	if ending := c.outbox.ending(); ending != nil && (ending.atOnce() || time.Since(c.outbox.endsSince) >= drainTime) {
		return ending
	}
	return nil
}

// writeWhole writes whole frames. A socket that takes them slowly is given time as long as
// it takes anything; once its reader is known to be too slow, or the server shuts down, writeTimeout for what is
// left, so that the close frame reaches it; and none when the connection ends for another reason. One
// that takes nothing for writeTimeout fails with os.ErrDeadlineExceeded.
func (c *connection) writeWhole(b batch) error {
	until := time.Now().Add(writeTimeout)
	ends := false
	for rest := b.data; len(rest) > 0; {
		if err := c.conn.SetWriteDeadline(time.Now().Add(writeTimeout / writeLooks)); err != nil {
			return err
		}
		n, err := c.conn.Write(rest)
		rest = rest[n:]
		if err == nil {
			continue
		}
		now := time.Now()
		if n > 0 && !ends {
			ending := c.ending()
			if ending != nil && !ending.hasTime() {
				return err
			}
			until, ends = now.Add(writeTimeout), ending != nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || !now.Before(until) {
			return err
		}
	}
	if report := c.hub.config.OnDelivered; report != nil && b.published > 0 {
		report(c.hub.now() - b.published)
	}
	c.sent = max(c.sent, b.seq)
	c.hub.meters.bytes.Add(len(b.data))
	c.hub.meters.frames.Add(b.frames)
	return nil
}

// ending returns how the connection is about to end, also if its reader is too slow for what it follows;
// nil if it is not.
func (c *connection) ending() *closing {
	if ending := c.outbox.ending(); ending != nil {
		return ending
	}
	if c.isLate() {
		return &endSlow
	}
	return nil
}

// isLate reports whether the rest of what is to be written is not kept any more. What a ring has dropped a conflating reader can do without.
func (c *connection) isLate() bool {
	return c.isOutgrown() || c.at.lapped() && c.outbox.jump == nil
}

// finish ends the connection: with a close frame if err is a closing, or else because a write failed.
func (c *connection) finish(err error) {
	end, why := (*closing)(nil), endGone.reason
	switch ending := c.ending(); {
	case errors.As(err, &end):
		c.outbox.close(*end) // already so, unless it was lapped
		c.end(*end)
		return
	case !errors.Is(err, os.ErrDeadlineExceeded):
	case ending.isSlow():
		why = ending.reason
	default:
		why = endStalled.reason
	}
	c.hub.meters.ends[why].Inc()
	c.outbox.close(endGone)
	c.cut()
}

// end writes the close frame, if anybody may still read it, and gives the peer a moment to
// answer it.
func (c *connection) end(how closing) {
	c.hub.meters.ends[how.reason].Inc()
	if how.code == 0 {
		_ = c.conn.Close()
		return
	}
	if how.reason == endSlow.reason {
		how.text = fmt.Sprintf("%s, last_seq=%d", how.text, c.lastSeq())
	}
	if c.writeWhole(batch{frame.AppendClose(nil, how.code, how.text), tally{frames: 1}}) != nil {
		c.cut()
		return
	}
	c.farewell.Store(true)
	// The reader ends with the peer's close frame, or with this deadline.
	if c.conn.SetReadDeadline(time.Now().Add(closeWait)) != nil {
		_ = c.conn.Close()
	}
}

// lastSeq returns a seq from which the client can resume without missing anything that it was not sent because its connection ends.
func (c *connection) lastSeq() ledger.Seq {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	return min(c.speaker.sentLocked(), c.outbox.firstLost()-1)
}

// cut resets the connection, unless what the kernel still holds ends with the close frame: other data is not worth waiting for.
func (c *connection) cut() {
	if c.conn == nil {
		return // the server has it still
	}
	socket := c.conn
	if c, ok := socket.(interface{ NetConn() net.Conn }); ok {
		socket = c.NetConn()
	}
	if tcp, ok := socket.(interface{ SetLinger(int) error }); ok && !c.farewell.Load() {
		_ = tcp.SetLinger(0) // at worst the close is a polite one
	}
	_ = c.conn.Close()
}
