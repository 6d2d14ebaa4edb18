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

// closeWait is how long the peer may take to answer a close frame.
const closeWait = time.Second

// batch is some whole frames that are written at once.
type batch struct {
	data      []byte
	frames    int
	seq       ledger.Seq    // the newest in it; 0 if it holds no updates
	published time.Duration // the newest, see Hub.now; 0: not known
}

// hasRoom reports whether any frame still fits.
func (b *batch) hasRoom() bool { return cap(b.data)-len(b.data) > maxFrameBytes }

// add takes in a frame that was appended to data, if there is one.
func (b *batch) add(data []byte, seq ledger.Seq) {
	if len(data) > len(b.data) {
		b.data = data
		b.count(1, seq, 0)
	}
}

// count notes frames that are in data.
func (b *batch) count(frames int, seq ledger.Seq, published time.Duration) {
	b.frames += frames
	b.seq, b.published = max(b.seq, seq), max(b.published, published)
}

// wake starts the writer, unless it runs.
func (s *subscriber) wake() {
	if s.writer.schedule() {
		go s.write()
	}
}

// write is the writer's goroutine, which runs only as long as there is something to do: it
// writes what the ring it follows holds and what waits in the outbox, keeps the peer awake, and
// ends with the connection's close frame. Afterwards the reader is unblocked.
//
// It alone writes to the socket after the handshake, and always whole frames: pings, pongs
// and the close frame pass through it like everything else. There is one at a time, see
// writerState. So control frames never land inside a data frame, many frames share one write,
// and nothing follows the close frame.
func (s *subscriber) write() {
	over := true
	defer func() {
		if p := recover(); p != nil { // the connection ends, the process goes on
			s.hub.panicked(p)
			_ = s.conn.Close()
		}
		if over {
			s.timers.alarm.Stop()
			s.writer.stop()
			s.ended.Done()
		}
	}()
	for {
		end, err := s.writeUntilIdle()
		if errors.As(err, &end) {
			err = nil
		}
		switch {
		case err != nil:
			s.hub.meters.ends[s.whyBroken(err)].Add(1)
			s.outbox.close(endGone)
			s.cut()
			return
		case end != nil:
			s.outbox.close(*end) // already so, unless it was lapped
			s.end(*end)
			return
		}
		s.timers.alarm.Reset(s.timers.due - s.hub.now())
		if s.writer.tryIdle() {
			over = false
			return
		}
	}
}

// whyBroken returns the reason that a connection ends for whose write failed.
func (s *subscriber) whyBroken(err error) string {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return endGone.reason
	}
	if s.isTooSlow() {
		if ending := s.outbox.endingSoon(); ending != nil {
			return ending.reason
		}
		return endSlow.reason
	}
	return endStalled.reason
}

// writeUntilIdle writes until nothing waits, or the connection ends in the way it returns.
func (s *subscriber) writeUntilIdle() (*closing, error) {
	var last ledger.Opt[position] // the head when the connection was seen to end
	for {
		if err := s.runDue(s.hub.now()); err != nil {
			return nil, err
		}
		// The head comes first: what was put before it moved there is then seen in the outbox,
		// and so nothing is written that belongs after an answer.
		limit := s.at.head()
		t := s.outbox.take(s.at.at)
		if t.special != nil || t.frames > 0 {
			if err := s.writeTaken(&t); err != nil {
				return nil, err
			}
			continue
		}
		if t.ending != nil {
			if t.ending.atOnce() {
				return t.ending, nil
			}
			if !last.Known {
				last = ledger.Some(limit)
			}
			limit = last.Value
		}
		if t.waits && t.until.at < limit.at {
			limit = t.until
		}
		frames, to, ok := s.at.next(limit)
		if s.outbox.conflates && s.at.at < limit.at && (!ok || s.at.lagsBy(1, jumpShare)) {
			jumped, err := s.jump()
			if err != nil {
				return nil, err
			}
			if jumped {
				continue
			}
		}
		switch {
		case !ok:
			s.hub.meters.laps.Inc()
			return &endSlow, nil
		case len(frames) == 0 && t.waits: // the head was read before it came
		case len(frames) == 0:
			return t.ending, nil
		default:
			b := batch{frames, int(to.frames - s.at.frames), to.seq, to.published}
			if err := s.writeOnce(b); err != nil {
				return nil, err
			}
			s.at.position = to
		}
	}
}

// writeTaken does what the outbox says.
func (s *subscriber) writeTaken(t *taken) error {
	switch {
	case t.special == nil:
		defer s.hub.memory.freeBatch(t.room)
		s.hub.meters.gaps.Add(t.gaps)
		return s.writeOnce(t.batch)
	case t.special.missed != nil:
		return s.writeMissed(t.special.missed)
	}
	s.at = *t.special.switchRing
	return nil
}

// writeLooks is how often a blocked write looks within Config.WriteTimeout whether the socket
// has taken anything.
const writeLooks = 50

// writeOnce writes whole frames. A socket that takes them slowly is given time as long as
// it takes anything; once its reader is known to be too slow, Config.WriteTimeout for what is
// left, so that the close frame reaches it; and none when the connection ends for another reason. One
// that takes nothing for Config.WriteTimeout fails with os.ErrDeadlineExceeded.
func (s *subscriber) writeOnce(b batch) error {
	timeout := s.hub.config.WriteTimeout
	began := time.Now()
	took := began         // when it took a byte last, the time between two looks at most after that
	var tooSlow time.Time // when that was seen
	for rest := b.data; len(rest) > 0; {
		if err := s.conn.SetWriteDeadline(time.Now().Add(timeout / writeLooks)); err != nil {
			return err
		}
		n, err := s.conn.Write(rest)
		rest = rest[n:]
		switch {
		case err == nil:
			continue
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		case n == 0 && time.Since(took) < timeout:
			continue
		case n == 0:
			return err
		}
		took = time.Now()
		switch {
		case !s.isTooSlow() && s.outbox.isClosing():
			return err
		case !s.isTooSlow():
		case tooSlow.IsZero():
			tooSlow = took
		case took.Sub(tooSlow) >= timeout:
			return err
		}
	}
	s.measure(began, b.published)
	s.sent = max(s.sent, b.seq)
	s.hub.meters.bytes.Add(len(b.data))
	s.hub.meters.frames.Add(b.frames)
	return nil
}

// measure reports a write that is over to those that asked for it.
func (s *subscriber) measure(began time.Time, published time.Duration) {
	if report := s.hub.config.OnWrite; report != nil {
		report(time.Since(began))
	}
	if report := s.hub.config.OnDelivered; report != nil && published > 0 {
		report(s.hub.now() - published)
	}
}

// isTooSlow reports whether the connection is about to end because its reader is too slow.
func (s *subscriber) isTooSlow() bool {
	if ending := s.outbox.endingSoon(); ending != nil {
		return ending.atOnce() && ending.code != 0
	}
	s.late = s.late || s.missed.outgrown(&s.hub.recent[s.level])
	return s.late || s.at.lapped() && !s.outbox.conflates
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
	if s.writeOnce(batch{data: frame.AppendClose(nil, c.code, c.text), frames: 1}) != nil {
		s.cut()
		return
	}
	// The reader ends with the peer's close frame, or with this deadline.
	if s.conn.SetReadDeadline(time.Now().Add(closeWait)) != nil {
		_ = s.conn.Close()
	}
}

// cut resets the connection: whatever the kernel still holds is not worth waiting for.
func (s *subscriber) cut() {
	if tcp, ok := unwrap[interface{ SetLinger(int) error }](s.conn); ok {
		_ = tcp.SetLinger(0) // at worst the close is a polite one
	}
	_ = s.conn.Close()
}

// unwrap looks for what the socket below can do through the conns around it.
func unwrap[T any](conn net.Conn) (found T, ok bool) {
	for {
		if found, ok = conn.(T); ok {
			return found, true
		}
		switch c := conn.(type) {
		case interface{ UnsafeConn() net.Conn }:
			conn = c.UnsafeConn()
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return found, false
		}
	}
}
