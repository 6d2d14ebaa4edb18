package stream

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// closeWait is how long the peer may take to answer a close frame.
const closeWait = time.Second

// write is the writer's goroutine: it takes what waits and writes it, keeps the peer
// awake, and ends with the connection's close frame. Afterwards the reader is unblocked.
//
// It alone writes to the socket after the handshake: pings, pongs and the close frame pass
// through the outbox like everything else, so control frames never land inside a data
// frame, many frames share one write, and nothing follows the close frame.
func (s *subscriber) write() {
	defer func() {
		if p := recover(); p != nil { // the connection ends, the process goes on
			s.hub.panicked(p)
			_ = s.conn.Close()
		}
	}()
	ticks := time.NewTicker(s.hub.config.HeartbeatInterval)
	defer ticks.Stop()
	lastPing := time.Now()
	var pieces []piece
	for {
		select {
		case <-s.outbox.wake:
		case now := <-ticks.C:
			s.tick(now)
			if now.Sub(lastPing) >= s.hub.config.PingInterval {
				lastPing = now
				s.outbox.put(one(appendControl(nil, opPing, nil), 0))
			}
		}
		var ending *closing
		pieces, ending = s.outbox.take(pieces)
		if err := s.writeAll(pieces); err != nil {
			s.outbox.close(endGone)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				s.hub.meters.closed(reasonStalled)
			} else {
				s.hub.meters.closed(reasonGone)
			}
			s.cut()
			return
		}
		if ending != nil {
			s.end(*ending)
			return
		}
	}
}

// batches are room to gather small pieces in, so that one call writes many frames.
var batches = sync.Pool{New: func() any {
	b := make([]byte, 0, pieceBytes)
	return &b
}}

// writeAll writes the pieces in order, as many a call as fit.
func (s *subscriber) writeAll(pieces []piece) error {
	if len(pieces) == 0 {
		return nil
	}
	room := batches.Get().(*[]byte)
	defer batches.Put(room)
	batch := piece{data: (*room)[:0]}
	flush := func() error {
		full := batch
		batch = piece{data: batch.data[:0]}
		return s.writeOnce(full)
	}
	for _, p := range pieces {
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

// writeOnce writes whole frames. A socket that takes them slowly is given time as long as
// it takes anything, and the connection is not ending; one that takes nothing for
// Config.WriteTimeout fails with os.ErrDeadlineExceeded.
func (s *subscriber) writeOnce(p piece) error {
	for rest := p.data; len(rest) > 0; {
		if err := s.conn.SetWriteDeadline(time.Now().Add(s.hub.config.WriteTimeout)); err != nil {
			return err
		}
		n, err := s.conn.Write(rest)
		if err != nil && (n == 0 || !errors.Is(err, os.ErrDeadlineExceeded) || s.outbox.isClosing()) {
			return err
		}
		rest = rest[n:]
	}
	s.sent = max(s.sent, p.seq)
	s.hub.meters.bytes.Add(len(p.data))
	s.hub.meters.frames.Add(p.frames)
	return nil
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

// tick is called about once a heartbeat.
func (s *subscriber) tick(now time.Time) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	slot, seq := s.hub.positionLocked(s.level)
	switch {
	case s.holding: // it will hear what led to the position
	case seq >= s.resumed:
		s.resumed = 0
	case now.After(s.resumedBy):
		s.resumed = 0
		s.say(func(b []byte) []byte { return appendResync(b, s.resumeID, seq, seq) })
	}
	if s.wants.extended && !s.holding {
		s.say(func(b []byte) []byte { return appendHeartbeat(b, slot, seq, now) })
	}
}

// say puts an answer in the outbox, as one text frame.
func (s *subscriber) say(write func([]byte) []byte) {
	s.outbox.put(one(appendFrame(nil, write), 0))
}
