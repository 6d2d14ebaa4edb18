package stream

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/valyala/fasthttp"
)

// mute is a connection that nothing can be written to. It tells when it ends, as those of a
// node do.
type mute struct {
	net.Conn
	lost func()
}

func (m *mute) IfLost(f func())           { m.lost = f }
func (m *mute) Write([]byte) (int, error) { return 0, errors.New("a broken socket") }

func (m *mute) Close() error {
	if m.lost != nil {
		m.lost()
	}
	return m.Conn.Close()
}

// A seat for which the handshake's answer could not be written is free again at once: a client whose
// handshakes break off is not kept out by them.
func TestALostHandshakeHoldsNoSeat(t *testing.T) {
	h := New(Config{Ledger: newFakeLedger(), MaxConnsPerClient: 1})
	server := &fasthttp.Server{Logger: discard{}, Handler: func(ctx *fasthttp.RequestCtx) {
		h.Upgrade(ctx, netip.AddrFrom4([4]byte{127, 0, 0, 1}), false)
	}}
	for range 3 {
		near, far := net.Pipe()
		served := make(chan error, 1)
		go func() {
			m := &mute{Conn: near}
			served <- server.ServeConn(m)
			_ = m.Close()
		}()
		if _, err := far.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + nonce + "\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		if err := <-served; err == nil {
			t.Fatal("the handshake was answered")
		}
		_, _ = far.Read(make([]byte, 1)) // until it is closed
		if h.seats.taken != 0 || len(h.seats.pending) != 0 {
			t.Fatalf("%d seats are taken, %d of them for nobody", h.seats.taken, len(h.seats.pending))
		}
	}
}
