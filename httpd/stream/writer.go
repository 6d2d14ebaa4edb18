package stream

import (
	"errors"
	"fmt"
	"net"
	"os"
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
	gaps      int           // among the frames
	seq       ledger.Seq    // the newest; 0 if they hold no updates
	published time.Duration // when the newest was, see Hub.now; 0: not known
}

func (t *tally) add(more tally) {
	t.frames += more.frames
	t.gaps += more.gaps
	t.seq, t.published = max(t.seq, more.seq), max(t.published, more.published)
}

// batch is some whole frames that are written at once.
type batch struct {
	data []byte
	tally
}

// hasRoom reports whether any frame still fits.
func (b *batch) hasRoom() bool { return cap(b.data)-len(b.data) > maxFrameBytes }

// add appends a packet.
func (b *batch) add(p *packet) {
	b.data = append(b.data, p.data...)
	b.tally.add(p.tally)
}

// addPart appends a part of an emission, if it has a frame.
func (b *batch) addPart(e *emission, f form, part int) {
	before := len(b.data)
	if b.data = e.appendPart(b.data, f, part); len(b.data) > before {
		b.tally.add(e.tally(part))
	}
}

// wake starts the writer, or lets the one that runs look once more before it stops.
func (s *subscriber) wake() {
	if s.wakes.Add(1) == 1 {
		go s.write()
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
func (s *subscriber) write() {
	over := true
	defer func() {
		if p := recover(); p != nil { // the connection ends, the process goes on
			s.hub.panicked(p)
			_ = s.conn.Close()
		}
		if over { // and wakes stays above 0: no other writer starts
			s.timers.alarm.Stop()
			s.ended.Done()
		}
	}()
	for {
		wakes := s.wakes.Load()
		if err := s.writeUntilIdle(); err != nil {
			s.finish(err)
			return
		}
		s.timers.alarm.Reset(s.timers.due - s.hub.now())
		if s.wakes.CompareAndSwap(wakes, 0) {
			over = false
			return
		}
	}
}

// writeUntilIdle writes until nothing waits. As an error it returns how the connection ends.
func (s *subscriber) writeUntilIdle() error {
	var last ledger.Opt[position] // the head when the connection was seen to end
	for {
		if err := s.runDue(s.hub.now()); err != nil {
			return err
		}
		// The head comes first: what was put before it moved there is then seen in the outbox,
		// and so nothing is written that belongs after an answer.
		limit := s.at.head()
		t := s.outbox.take(s.at.at)
		if t.run != nil || t.frames > 0 {
			if err := s.writeTaken(&t); err != nil {
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
		wrote, err := s.writeRing(limit)
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
func (s *subscriber) writeTaken(t *taken) error {
	if t.run != nil {
		return t.run()
	}
	defer freeBatch(s.hub.memory, t.room)
	return s.writeOnce(t.batch)
}

// jumpShare is the part of its ring by which a conflating subscriber lags that goes on with a digest.
const jumpShare = 4

// writeRing writes the next frames of the ring up to a limit, if there are any.
func (s *subscriber) writeRing(limit position) (wrote bool, err error) {
	frames, to, ok := s.at.next(limit)
	if s.at.at < limit.at && (!ok || s.at.lagsBy(jumpShare)) {
		if b := s.digest(); b != nil {
			return true, s.writeMissed(b)
		}
	}
	if !ok {
		s.hub.meters.laps.Inc()
		return false, &endSlow
	}
	if len(frames) == 0 {
		return false, nil
	}
	b := batch{frames, to.tally}
	b.frames -= s.at.frames
	if err := s.writeOnce(b); err != nil {
		return false, err
	}
	s.at.position = to
	return true, nil
}

// writeLooks is how often a blocked write looks within Config.WriteTimeout whether the socket
// has taken anything.
const writeLooks = 50

// writeOnce writes whole frames. Its error is how the connection ends if nothing more is to be written before that, or drainTime is over.
func (s *subscriber) writeOnce(b batch) error {
	if err := s.writeWhole(b); err != nil {
		return err
	}
	if ending := s.outbox.ending(); ending != nil && (ending.atOnce() || time.Since(s.outbox.endsSince) >= drainTime) {
		return ending
	}
	return nil
}

// writeWhole writes whole frames. A socket that takes them slowly is given time as long as
// it takes anything; once its reader is known to be too slow, or the server shuts down, Config.WriteTimeout for what is
// left, so that the close frame reaches it; and none when the connection ends for another reason. One
// that takes nothing for Config.WriteTimeout fails with os.ErrDeadlineExceeded.
func (s *subscriber) writeWhole(b batch) error {
	timeout := s.hub.config.WriteTimeout
	began := time.Now()
	until := began.Add(timeout)
	ends := false
	for rest := b.data; len(rest) > 0; {
		if err := s.conn.SetWriteDeadline(time.Now().Add(timeout / writeLooks)); err != nil {
			return err
		}
		n, err := s.conn.Write(rest)
		rest = rest[n:]
		if err == nil {
			continue
		}
		now := time.Now()
		if n > 0 && !ends {
			ending := s.ending()
			if ending != nil && !ending.hasTime() {
				return err
			}
			until, ends = now.Add(timeout), ending != nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || !now.Before(until) {
			return err
		}
	}
	if report := s.hub.config.OnWrite; report != nil {
		report(time.Since(began))
	}
	if report := s.hub.config.OnDelivered; report != nil && b.published > 0 {
		report(s.hub.now() - b.published)
	}
	s.sent = max(s.sent, b.seq)
	s.hub.meters.bytes.Add(len(b.data))
	s.hub.meters.frames.Add(b.frames)
	s.hub.meters.gaps.Add(b.gaps)
	return nil
}

// ending returns how the connection is about to end, also if its reader is too slow for what it follows;
// nil if it is not.
func (s *subscriber) ending() *closing {
	if ending := s.outbox.ending(); ending != nil {
		return ending
	}
	s.late = s.late || s.missed.outgrown(&s.hub.recent[s.level])
	if s.late || s.at.lapped() && !s.outbox.conflates {
		return &endSlow
	}
	return nil
}

// finish ends the connection: with a close frame if err is a closing, or else because a write failed.
func (s *subscriber) finish(err error) {
	end, why := (*closing)(nil), endGone.reason
	switch ending := s.ending(); {
	case errors.As(err, &end):
		s.outbox.close(*end) // already so, unless it was lapped
		s.end(*end)
		return
	case !errors.Is(err, os.ErrDeadlineExceeded):
	case ending.isSlow():
		why = ending.reason
	default:
		why = endStalled.reason
	}
	s.hub.meters.ends[why].Add(1)
	s.outbox.close(endGone)
	s.cut()
}

// end writes the close frame, if anybody may still read it, and gives the peer a moment to
// answer it.
func (s *subscriber) end(c closing) {
	s.hub.meters.ends[c.reason].Add(1)
	if c.code == 0 {
		_ = s.conn.Close()
		return
	}
	if c.reason == endSlow.reason {
		c.text = fmt.Sprintf("%s, last_seq=%d", c.text, s.sent)
	}
	if s.writeWhole(batch{frame.AppendClose(nil, c.code, c.text), tally{frames: 1}}) != nil {
		s.cut()
		return
	}
	s.told.Store(true)
	// The reader ends with the peer's close frame, or with this deadline.
	if s.conn.SetReadDeadline(time.Now().Add(closeWait)) != nil {
		_ = s.conn.Close()
	}
}

// cut resets the connection, unless what the kernel still holds ends with the close frame: else it is not worth waiting for.
func (s *subscriber) cut() {
	if s.conn == nil {
		return // the server has it still
	}
	socket := s.conn
	if c, ok := socket.(interface{ NetConn() net.Conn }); ok {
		socket = c.NetConn()
	}
	if tcp, ok := socket.(interface{ SetLinger(int) error }); ok && !s.told.Load() {
		_ = tcp.SetLinger(0) // at worst the close is a polite one
	}
	_ = s.conn.Close()
}
