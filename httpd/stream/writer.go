package stream

import (
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"ledgerd/engine/ledger"
)

// write is the writer's goroutine: it takes what waits and writes it, keeps the peer
// awake, and ends with the connection's close frame. Afterwards the reader is unblocked.
//
// Frames are written to the socket directly, around the websocket library, which would
// write one frame a call. The library itself writes at most one close frame, from the
// reader's goroutine, when the peer breaks the protocol. The two never interleave within
// a frame: a call of Write on a connection is atomic against others, every call here
// holds whole frames only, and after a call that failed half-way nothing is written.
func (s *subscriber) write() {
	w := writer{subscriber: s, socket: s.conn.NetConn()}
	defer w.recover()
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
				s.outbox.put(0, one(appendControl(nil, pingFrame, nil)))
			}
		}
		var seq ledger.Seq
		var ending *closing
		pieces, seq, ending = s.outbox.take(pieces)
		if ending != nil && ending.code == 0 {
			w.leave()
			return
		}
		if !w.writeAll(pieces) {
			s.outbox.close(closing{code: closeSlow})
			s.hub.meters.closed(closeSlow)
			s.cut()
			return
		}
		if len(pieces) > 0 {
			s.seen.Store(int64(max(seq, ledger.Seq(s.seen.Load()))))
		}
		if ending != nil {
			w.end(*ending)
			return
		}
	}
}

// writer writes to one socket.
type writer struct {
	*subscriber
	socket net.Conn
}

// batches are room to gather small pieces in, so that one call writes many frames.
var batches = sync.Pool{New: func() any {
	b := make([]byte, 0, pieceBytes)
	return &b
}}

// writeAll writes the pieces in order, as many a call as fit; false if the socket refuses.
func (w writer) writeAll(pieces []piece) bool {
	if len(pieces) == 0 {
		return true
	}
	room := batches.Get().(*[]byte)
	defer batches.Put(room)
	batch, frames := (*room)[:0], 0
	flush := func() bool {
		sent := frames
		written := batch
		batch, frames = batch[:0], 0
		return sent == 0 || w.writeOnce(written, sent)
	}
	for _, p := range pieces {
		if len(batch)+len(p.data) > cap(batch) && !flush() {
			return false
		}
		if len(p.data) > cap(batch)/2 { // not worth copying
			if !flush() || !w.writeOnce(p.data, p.frames) {
				return false
			}
			continue
		}
		batch, frames = append(batch, p.data...), frames+p.frames
	}
	return flush()
}

func (w writer) writeOnce(data []byte, frames int) bool {
	if w.socket.SetWriteDeadline(time.Now().Add(w.hub.config.WriteTimeout)) != nil {
		return false
	}
	if _, err := w.socket.Write(data); err != nil {
		return false
	}
	w.hub.meters.bytes.Add(len(data))
	w.hub.meters.frames.Add(uint64(frames))
	return true
}

// end writes the close frame and lets the peer answer it for a moment before the reader is
// ended.
func (w writer) end(c closing) {
	w.hub.meters.closed(c.code)
	if c.code == closeSlow {
		c.text = fmt.Sprintf("slow consumer, last_seq=%d", w.seen.Load())
	}
	if !w.writeOnce(appendClose(nil, c.code, c.text), 1) {
		w.cut()
		return
	}
	// The reader ends with the peer's close frame, or with this deadline.
	if w.conn.SetReadDeadline(time.Now().Add(closeWait)) != nil {
		_ = w.conn.Close()
	}
}

// leave ends a connection whose reader has ended it: the peer is gone, or the library has
// told it what it did wrong. What the peer still sends is read for a moment, or the
// kernel would answer it with a reset, which can overtake that.
func (w writer) leave() {
	w.hub.meters.closed(0)
	if half, ok := unwrap[interface{ CloseWrite() error }](w.socket); ok && half.CloseWrite() == nil &&
		w.socket.SetReadDeadline(time.Now().Add(closeWait)) == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(w.socket, drainBytes))
	}
	_ = w.conn.Close()
}

// drainBytes is the most that is read from a peer that broke the protocol.
const drainBytes = 1 << 20

// closeWait is how long the peer may take to answer a close frame.
const closeWait = time.Second

// recover keeps a fault of ours from ending the process: the connection ends instead.
func (w writer) recover() {
	if p := recover(); p != nil {
		w.hub.panicked(p)
		_ = w.conn.Close()
	}
}

// tick is called about once a heartbeat.
func (s *subscriber) tick(now time.Time) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	slot, seq := s.hub.positionLocked(s.level)
	if s.resumed > 0 && seq < s.resumed && now.After(s.resumedBy) {
		s.say(func(b []byte) []byte { return appendResync(b, s.resumeID, seq, seq) })
		s.resumed = 0
	}
	if s.wants.extended && !s.holding {
		s.say(func(b []byte) []byte { return appendHeartbeat(b, slot, seq, now) })
	}
}
