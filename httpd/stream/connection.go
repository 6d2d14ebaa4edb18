package stream

import (
	"bytes"
	"io"
	"net"
	"time"

	"ledgerd/engine/ledger"
)

// connection is a socket: its client, what waits for it, its reader and its writer. Its speaker handles and makes the messages.
type connection struct {
	hub     *Hub
	speaker speaker
	seat    *seat
	outbox  *outbox
	// awaited: it was made before the hub was closed, and Shutdown waits for it. It never changes.
	awaited bool
	conn    net.Conn // nil until its handshake is answered; read by the reader, written by the writer
	frames  bucket   // the reader's: of the client's frames
	named   int      // the reader's: names that memory is taken for
	warned  bool     // the reader's: that little work is left
	writer
}

// speaker answers the messages on a connection, and makes those that are sent without a request.
type speaker interface {
	// handle answers one message. The reader calls it.
	handle(text []byte)
	// tick is called once a heartbeat while writer.ticks is set. The writer calls it.
	tick(now time.Time)
	// warning says how much work is left, nil if the client would not understand it. The reader calls it.
	warning(left time.Duration) *packet
	// wanted says what the client wants, as one of wantedKinds. The hub's lock is held.
	wanted() string
	// sentLocked returns the seq up to which the client was sent everything, when its connection ends, apart from what still waits. The
	// writer calls it, with the hub's lock held.
	sentLocked() ledger.Seq
	// leave removes the speaker from the hub once the connection has ended.
	leave()
}

// open makes a connection without a socket. What it is to be sent waits in its outbox until adopt gives it the socket,
// or depart is called.
func (c *connection) open(h *Hub, speaker speaker, place *seat) {
	c.hub, c.speaker, c.seat, c.outbox, c.over = h, speaker, place, newOutbox(h.config.OutboxBytes, h.memory, &place.snapshots), make(chan struct{})
	c.outbox.wake = c.wake
	c.wakes.Store(1)
}

// enterLocked makes the connection one of the hub's. The hub's lock is held.
func (c *connection) enterLocked() {
	if c.awaited = !c.hub.closed.Load(); c.awaited {
		c.hub.awaited.Add(1)
	} else {
		c.outbox.close(endShutdown)
	}
	c.hub.connections[c] = struct{}{}
}

// adopt gives a connection the socket on which its handshake was answered, and returns at once:
// with the goroutine it is called on goes all that the handshake needed, the request, its
// buffers and a grown stack, many times the size of an idle connection. From here on socket
// is read; before is the server's way to it, which may hold bytes already that the client
// sent right after its handshake. A server that closes what it handed over when adopt returns
// gives sockets that can be detached.
func (c *connection) adopt(socket, before net.Conn) {
	early := readEarly(before)
	if d, ok := socket.(interface{ Detach() net.Conn }); ok {
		socket = d.Detach()
	}
	c.hub.mu.Lock()
	c.conn = socket // Shutdown may cut it from here on
	c.hub.mu.Unlock()
	c.extendDeadline()
	c.startWriter()
	if c.awaited {
		go c.live(early)
	} else {
		c.live(early) // the server waits for this call
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

// live is a connection's life, and the reader's goroutine. early is what the client has sent
// so far.
func (c *connection) live(early []byte) {
	defer c.depart()
	c.read(early)
	<-c.over
}

// depart ends a connection whose socket has ended, or whose handshake was not answered. The seat is given
// back before the socket is closed: a client that sees the end may come again at once.
func (c *connection) depart() {
	c.speaker.leave()
	c.hub.mu.Lock()
	delete(c.hub.connections, c)
	c.hub.mu.Unlock()
	c.outbox.discard()
	c.seat.free()
	if c.conn != nil {
		_ = c.conn.Close() // often closed already
	}
	if c.awaited {
		c.hub.awaited.Done()
	}
}

// pay charges the client before some work is done. It disconnects a client in debt instead. When a fifth of what the client may spend
// is left, pay warns it, if its form has such a frame: once, and again only after half of the budget had come back.
func (c *connection) pay(cost time.Duration) bool {
	if !c.seat.work.spend(cost) {
		c.outbox.close(endRate)
		return false
	}
	switch left := c.seat.work.left(); {
	case left > workBurst/2:
		c.warned = false
	case left <= workBurst/5 && !c.warned:
		if told := c.speaker.warning(left); told != nil {
			c.warned = true
			c.outbox.put(nil, told)
		}
	}
	return true
}

// endOnPanic is deferred: after a fault of ours the connection ends, and the process goes on.
func (c *connection) endOnPanic() {
	if p := recover(); p != nil {
		c.hub.panicked(p)
		c.outbox.close(endInternal)
	}
}
