package httpd

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/accesslog"
	"ledgerd/httpd/ratelimit"
	"ledgerd/httpd/wire"
)

var handshake = []string{"Connection: keep-alive, Upgrade", "Upgrade: WebSocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA=="}

// G4, G5: TestUpgradeHandsOverTheConnection upgrades with frames right behind the handshake, in
// the same write: they go to the new owner as they are, whether they look like requests
// or not, first through fasthttp's connection and then through ours. The access log has a line for the answer, and one when the socket ends.
func TestUpgradeHandsOverTheConnection(t *testing.T) {
	const frame = "\x81\x83\x00\n\x00\nabc" // a masked text frame
	called, told, ended, logged := make(chan ratelimit.Client, 1), make(chan bool, 1), make(chan struct{}), t.TempDir()+"/access.log"
	w := serveTCP(t, func(c *Config) {
		c.AccessLog, _ = accesslog.Open(logged, slog.New(slog.DiscardHandler))
		c.Identity = ratelimit.NewIdentity(nil, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
		c.Upgrade = func(ctx *fasthttp.RequestCtx, client ratelimit.Client) error {
			called <- client
			ctx.SetStatusCode(http.StatusSwitchingProtocols)
			ctx.Response.Header.Set("Connection", "Upgrade")
			ctx.Response.Header.Set("Upgrade", "websocket")
			ours := ctx.Conn().(*wire.Conn)
			ours.IfLost(func() { told <- true })
			ctx.Hijack(func(c net.Conn) {
				early := make([]byte, len(second)) // what came with the handshake is read before
				_, _ = io.ReadFull(c, early)
				owned := ours.Detach()
				go func() { // the hijacker is over before more is read
					defer close(ended)
					defer func() { _ = owned.Close() }()
					_, _ = owned.Write(early)
					_, _ = io.CopyN(owned, owned, int64(len(frame)))
				}()
			})
			return nil
		}
	})
	c := w.dial("")
	send(t, c, second+"GET /api/ws/accounts?mode=none HTTP/1.1\r\nHost: x\r\n"+strings.Join(handshake, "\r\n")+"\r\n\r\n"+second)
	from := bufio.NewReader(c)
	ledgertest.Equal(t, readReply(t, from, "GET").status, 200, "the request in front")
	r := readReply(t, from, "GET")
	checkEvery(t, "upgrade", r)
	checkDocument(t, "GET", "/api/ws/accounts", r)
	if r.status != 101 || r.header.Get("Upgrade") != "websocket" || r.header.Get("X-Ledger-Slot") != "30" {
		t.Errorf("status %d, headers %v", r.status, r.header)
	}
	if got := <-called; got.Key != netip.MustParseAddr("127.0.0.1") || !got.Exempt {
		t.Errorf("the handler was called for %v", got)
	}
	send(t, c, frame)
	echo, err := io.ReadAll(from)
	if err != nil || string(echo) != second+frame {
		t.Errorf("the new owner got %q, %v, want the bytes as sent", echo, err)
	}
	<-ended
	ledgertest.Equal(t, w.ledger.asked.Load(), 1, "questions asked, none of what followed")
	ledgertest.Equal(t, w.server.routes[len(w.server.routes)-1].requests[0].Load(), 1, "upgrades counted")
	ledgertest.Equal(t, w.server.Connections(), 0, "connections that are counted")
	ledgertest.Equal(t, len(told), 0, "how often the handshake was told to be lost")
	over, end := context.WithCancel(t.Context())
	end()
	w.server.config.AccessLog.Run(over)
	lines := strings.Split(strings.TrimSpace(string(readFile(t, logged))), "\n")
	if len(lines) != 3 || strings.Contains(lines[1], "ended") || !strings.HasSuffix(lines[2], `,"socket":"ended"}`) {
		t.Errorf("the access log says %q, want a line for each answer and one for the end of the socket", lines)
	}
}

// An upgrade handler hears of a connection that ends before its answer was written, once.
func TestALostHandshakeIsTold(t *testing.T) {
	told := make(chan bool, 2)
	w := serveTCP(t, func(c *Config) {
		c.Upgrade = func(ctx *fasthttp.RequestCtx, _ ratelimit.Client) error {
			ctx.SetStatusCode(http.StatusSwitchingProtocols)
			ours := ctx.Conn().(*wire.Conn)
			ours.IfLost(func() { told <- true })
			_ = ours.NetConn().Close()
			ctx.Hijack(func(net.Conn) { t.Error("a connection that has ended is handed over") })
			return nil
		}
	})
	c := w.dial("")
	send(t, c, "GET /api/ws/accounts HTTP/1.1\r\nHost: x\r\n"+strings.Join(handshake, "\r\n")+"\r\n\r\n")
	<-told
	_, _ = io.Copy(io.Discard, c)
	ledgertest.Equal(t, len(told), 0, "how often it was told once too often")
}
