package stream

import (
	"bytes"
	"io"
	"net"
	"time"
)

// join makes a subscriber without a connection, which resumes after the seq it has seen if it says so.
// What it is to be sent waits in its outbox until adopt gives it the connection, or depart is called.
func (h *Hub) join(asked query, place *seat) (s *subscriber) {
	s = &subscriber{
		hub: h, seat: place, level: asked.level, wants: asked.wants,
		outbox: newOutbox(h.config.OutboxBytes, h.memory),
	}
	s.outbox.conflates, s.outbox.wake = asked.conflates, s.wake
	s.wakes.Store(1) // as if there were a writer
	s.ended.Add(1)
	defer s.endOnPanic()
	s.giveNames(-s.wants.names.count())
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.awaited = !h.closed.Load(); s.awaited {
		h.conns.Add(1)
	} else {
		s.outbox.close(endShutdown)
	}
	s.sent = h.reachedLocked(s.level)
	h.levels[s.level].add(s)
	if asked.resume.Known {
		s.resumeLocked(asked.resume.Value, asked.wants, noID)
	}
	return s
}

// adopt gives a subscriber the connection on which its handshake was answered, and returns at once:
// with the goroutine it is called on goes all that the handshake needed, the request, its
// buffers and a grown stack, many times the size of an idle connection. From here on socket
// is read; before is the server's way to it, which may hold bytes already that the client
// sent right after its handshake. A server that closes what it handed over when adopt returns
// gives sockets that can be detached.
func (s *subscriber) adopt(socket, before net.Conn) {
	early := readEarly(before)
	if d, ok := socket.(interface{ Detach() net.Conn }); ok {
		socket = d.Detach()
	}
	s.hub.mu.Lock()
	s.conn = socket // Shutdown may cut it from here on
	s.hub.mu.Unlock()
	s.extendDeadline()
	s.timers.pinged, s.timers.alarm = s.hub.now(), time.AfterFunc(s.hub.config.PingInterval, s.wake)
	if !s.wakes.CompareAndSwap(1, 0) { // something waits
		go s.write()
	}
	if s.awaited {
		go s.live(early)
	} else {
		s.live(early) // the server waits for this call
	}
}

// readEarly returns the bytes that were read from the socket already. A connection that
// fails says so again when it is read next.
func readEarly(before net.Conn) []byte {
	// With a deadline that has passed the socket itself gives nothing.
	if before.SetReadDeadline(time.Unix(1, 0)) != nil {
		return nil
	}
	early, _ := io.ReadAll(before)
	_ = before.SetReadDeadline(time.Time{}) // a socket that takes no deadline is closed
	return bytes.Clone(early)               // of its own size
}

// live is a subscriber's life, and the reader's goroutine. early is what the client has sent
// so far.
func (s *subscriber) live(early []byte) {
	defer s.depart()
	s.read(early)
	s.ended.Wait()
}

// depart removes a subscriber whose connection has ended, or whose handshake was not answered. The seat is given
// back before the socket is closed: a client that sees the end may come again at once.
func (s *subscriber) depart() {
	s.unlink(s.wants.names)
	s.giveNames(s.named) // that were not linked yet
	s.hub.mu.Lock()
	s.audience().remove(s)
	s.hub.mu.Unlock()
	s.outbox.discard()
	s.seat.free()
	if s.conn != nil {
		_ = s.conn.Close() // often closed already
	}
	if s.awaited {
		s.hub.conns.Done()
	}
}
