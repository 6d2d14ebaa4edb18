package stream

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"ledgerd/engine/ledger"
)

// closeWait is how long the peer may take to answer a close frame.
const closeWait = time.Second

// wake starts the writer, unless it runs.
func (s *subscriber) wake() {
	if s.duty.call() {
		go s.write()
	}
}

// write is the writer's goroutine, which runs only as long as there is something to do: it
// writes what the ring it follows was told and what waits in the outbox, keeps the peer
// awake, and ends with the connection's close frame. Afterwards the reader is unblocked.
//
// It alone writes to the socket after the handshake, and always whole frames: pings, pongs
// and the close frame pass through it like everything else. There is one at a time, see duty.
// So control frames never land inside a data frame, many frames share one write, and nothing
// follows the close frame.
func (s *subscriber) write() {
	over := true
	defer func() {
		if p := recover(); p != nil { // the connection ends, the process goes on
			s.hub.panicked(p)
			_ = s.conn.Close()
		}
		if over {
			s.pulse.end()
			s.duty.retire()
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
			switch {
			case !errors.Is(err, os.ErrDeadlineExceeded):
				s.hub.meters.closed(reasonGone)
			case s.isTooSlow():
				s.hub.meters.closed(reasonSlow)
			default:
				s.hub.meters.closed(reasonStalled)
			}
			s.outbox.close(endGone)
			s.cut()
			return
		case end != nil:
			s.outbox.close(*end) // already so, unless it was lapped
			s.end(*end)
			return
		}
		s.pulse.arm(s.outbox.wake)
		if s.duty.leave() {
			over = false
			return
		}
	}
}

// writeUntilIdle writes until nothing waits, or the connection ends in the way it returns.
func (s *subscriber) writeUntilIdle() (*closing, error) {
	var pieces []piece
	var last ledger.Opt[place] // the head when the connection was seen to end
	for {
		if err := s.beat(time.Now()); err != nil {
			return nil, err
		}
		// The head comes first: what was put before it moved there is then seen in the outbox,
		// and so nothing is written that belongs behind an answer.
		limit := s.at.head()
		var until ledger.Opt[place]
		var ending *closing
		pieces, until, ending = s.outbox.take(pieces, s.at.at)
		if len(pieces) > 0 {
			if err := s.writeAll(pieces); err != nil {
				return nil, err
			}
			continue
		}
		if ending != nil {
			if ending.atOnce() {
				return ending, nil
			}
			if !last.Known {
				last = ledger.Some(limit)
			}
			limit = last.Value
		}
		if until.Known && until.Value.at < limit.at {
			limit = until.Value
		}
		frames, to, ok := s.at.next(limit)
		if s.outbox.conflates && s.at.at < limit.at && (!ok || s.at.behind(2)) {
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
		case len(frames) == 0 && until.Known: // the head was read before it came
		case len(frames) == 0:
			return ending, nil
		default:
			if err := s.writeOnce(piece{data: frames, frames: int(to.frames - s.at.frames), seq: to.seq}); err != nil {
				return nil, err
			}
			s.at.place = to
		}
	}
}

// batches are room to gather small pieces in, so that one call writes many frames.
var batches = sync.Pool{New: func() any {
	b := make([]byte, 0, pieceBytes)
	return &b
}}

// writeAll writes the pieces in order, as many a call as fit. What stands for frames comes
// alone.
func (s *subscriber) writeAll(pieces []piece) error {
	switch first := pieces[0]; {
	case first.turn != nil:
		s.at = *first.turn
		return nil
	case first.missed != nil:
		s.sent = first.missed.seen
		return s.writeMissed(first.missed)
	}
	room := batches.Get().(*[]byte)
	defer batches.Put(room)
	batch := piece{data: (*room)[:0]}
	flush := func() error {
		full := batch
		batch = piece{data: batch.data[:0]}
		if s.isTooSlow() { // what was taken already is not written any more either
			return &endSlow
		}
		return s.writeOnce(full)
	}
	for _, p := range pieces {
		if p.gap {
			s.hub.meters.gaps.Inc()
		}
		large := len(p.data) > cap(batch.data)/2 // not worth copying
		if large || len(batch.data)+len(p.data) > cap(batch.data) {
			if err := flush(); err != nil {
				return err
			}
		}
		if large {
			if err := s.writeOnce(p); err != nil {
				return err
			}
			continue
		}
		batch.data = append(batch.data, p.data...)
		batch.frames += p.frames
		batch.seq = max(batch.seq, p.seq)
	}
	return flush()
}

// writeTurns is how often a blocked write looks within Config.WriteTimeout whether the socket
// has taken anything.
const writeTurns = 50

// writeOnce writes whole frames. A socket that takes them slowly is given time as long as
// it takes anything; once its reader is known to be too slow, Config.WriteTimeout for what is
// left, so that it can be told; and none when the connection ends for another reason. One
// that takes nothing for Config.WriteTimeout fails with os.ErrDeadlineExceeded.
func (s *subscriber) writeOnce(p piece) error {
	timeout := s.hub.config.WriteTimeout
	taken := time.Now()   // when it took a byte last, a turn's length at most after that
	var tooSlow time.Time // when that was seen
	for rest := p.data; len(rest) > 0; {
		if err := s.conn.SetWriteDeadline(time.Now().Add(timeout / writeTurns)); err != nil {
			return err
		}
		n, err := s.conn.Write(rest)
		rest = rest[n:]
		switch {
		case err == nil:
			continue
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		case n == 0 && time.Since(taken) < timeout:
			continue
		case n == 0:
			return err
		}
		taken = time.Now()
		switch {
		case !s.isTooSlow() && s.outbox.isClosing():
			return err
		case !s.isTooSlow():
		case tooSlow.IsZero():
			tooSlow = taken
		case taken.Sub(tooSlow) >= timeout:
			return err
		}
	}
	s.sent = max(s.sent, p.seq)
	s.hub.meters.bytes.Add(len(p.data))
	s.hub.meters.frames.Add(p.frames)
	return nil
}

// isTooSlow reports whether the connection is about to end because its reader is too slow.
func (s *subscriber) isTooSlow() bool {
	if ending := s.outbox.endingSoon(); ending != nil {
		return ending.reason == reasonSlow
	}
	s.late = s.late || s.missed.outgrown(&s.hub.recent[s.level])
	return s.late || s.at.lapped() && !s.outbox.conflates
}

// end writes the close frame, if anybody may still read it, and gives the peer a moment to
// answer it.
func (s *subscriber) end(c closing) {
	s.hub.meters.closed(c.reason)
	if c.code == 0 {
		_ = s.conn.Close()
		return
	}
	if c.reason == reasonSlow {
		c.text = fmt.Sprintf("%s, last_seq=%d", c.text, s.sent)
	}
	if s.writeOnce(one(appendClose(nil, c.code, c.text), 0)) != nil {
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

// say puts an answer in the outbox, as one text frame. The hub's lock is held.
func (s *subscriber) say(write func([]byte) []byte) {
	s.put(one(appendFrame(nil, write), 0))
}
