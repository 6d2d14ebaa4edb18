package stream

import (
	"bytes"
	"io"
	"net"
	"time"
)

// adopt makes a subscriber of a connection whose handshake was answered, and returns at once:
// with the goroutine it is called on goes all that the handshake needed, the request, its
// buffers and a grown stack, many times the size of an idle connection. From here on socket
// is read; before is the server's way to it, which may hold bytes already that the client
// sent right after its handshake. A server that closes what it handed over when adopt returns
// gives sockets that can be detached.
func (h *Hub) adopt(socket, before net.Conn, place *seat, asked query) {
	early := readEarly(before)
	if d, ok := socket.(interface{ Detach() net.Conn }); ok {
		socket = d.Detach()
	}
	s := &subscriber{
		hub: h, conn: socket, seat: place, level: asked.level, wants: asked.wants,
		outbox: newOutbox(h.config.OutboxBytes, &h.memory),
	}
	s.outbox.conflates, s.outbox.wake = asked.conflates, s.wake
	s.timers.pinged, s.timers.alarm = h.now(), time.AfterFunc(h.config.PingInterval, s.wake)
	s.ended.Add(1)
	if !h.join(s, asked.resume) {
		s.outbox.close(endShutdown)
		s.read(early) // up to the peer's answer
		s.ended.Wait()
		s.vacate()
		return
	}
	s.extendDeadline()
	go s.live(early)
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
	defer s.hub.conns.Done() // last: Shutdown waits for the seat and the socket too
	defer s.vacate()
	defer s.hub.leave(s)
	s.read(early)
	s.ended.Wait()
}

// vacate ends the connection and gives its seat back. The seat comes first: a client that sees the
// end may come again at once.
func (s *subscriber) vacate() {
	s.outbox.discard()
	s.seat.free()
	_ = s.conn.Close() // often closed already
}
