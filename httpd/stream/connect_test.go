package stream

import (
	"errors"
	"io"
	"log"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/ratelimit"
)

// hooked is a connection whose first write something comes before. It tells when it ends, as those of a node do.
type hooked struct {
	net.Conn
	before func() error
	lost   func()
}

func (h *hooked) IfLost(f func()) { h.lost = f }

func (h *hooked) Write(p []byte) (int, error) {
	if err := h.before(); err != nil {
		return 0, err
	}
	h.before = func() error { return nil }
	return h.Conn.Write(p)
}

// A seat for which the handshake's answer could not be written is free again at once: a client whose
// handshakes break off is not kept out by them.
func TestALostHandshakeHoldsNoSeat(t *testing.T) {
	h := New(Config{Ledger: newFakeLedger()})
	h.SetCaps(1, 1)
	server := &fasthttp.Server{Logger: log.New(io.Discard, "", 0), Handler: func(ctx *fasthttp.RequestCtx) {
		_ = h.Upgrade(ctx, ratelimit.Client{Key: netip.AddrFrom4([4]byte{127, 0, 0, 1})})
	}}
	for range 3 {
		near, far := net.Pipe()
		go func() { _, _ = far.Write(requestOf("")) }()
		broken := &hooked{Conn: near, before: func() error { return errors.New("a broken socket") }}
		if server.ServeConn(broken) == nil {
			t.Fatal("the handshake was answered")
		}
		broken.lost()
		ledgertest.Equal(t, []int{h.seats.taken, len(h.connections)}, []int{0, 0}, "seats that are taken and connections that are left")
	}
}

// What is published before the client can have read the 101 is told, whatever it follows.
func TestAPositionIsFixedBeforeTheAnswer(t *testing.T) {
	for _, query := range []string{"", "?pubkeys=" + key(1).String(), "?programs=" + programA.String()} {
		inMemory(t, nil, func(n *node) {
			near, far := net.Pipe()
			server := &fasthttp.Server{KeepHijackedConns: true, Handler: func(ctx *fasthttp.RequestCtx) { _ = n.hub.Upgrade(ctx, n.client) }}
			publish := func() error {
				n.script.block(1, account(1, 1, programA))
				return nil
			}
			go func() { _ = server.ServeConn(&hooked{Conn: near, before: publish}) }()
			n.connect = func() (net.Conn, error) { return far, far.SetDeadline(time.Now().Add(patience)) }
			c := n.dial(query)
			c.expect(basicFrame(account(1, 1, programA), 1))
		})
	}
}

func TestImpossibleOriginsAreFound(t *testing.T) {
	for _, good := range [][]string{nil, {"*"}, {"https://app.example"}, {"http://localhost:3000", "https://[::1]:8443", "app://bundle"}} {
		must(t, CheckOrigins(good))
	}
	for _, bad := range []string{
		"", " ", "null", "app.example", "https://", "//app.example", "https://app.example/", "https://app.example/path", "https://app.example?q",
		"https://*.example", "https://App.example", "HTTPS://app.example", "https://user@app.example", "https://app.example:", "https://app.example:x", "https://a b", "https://app.example:443", "http://app.example:80",
	} {
		ledgertest.ErrorSays(t, CheckOrigins([]string{"https://app.example", bad}), "must be a scheme and a host", "%q", bad)
	}
	ledgertest.ErrorSays(t, CheckOrigins([]string{"https://app.example", "*"}), "name no others beside it", "* beside others")
}
