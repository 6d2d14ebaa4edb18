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
// or not, through fasthttp's connection and through ours. The access log has a line for the answer, and one when the socket ends.
func TestUpgradeHandsOverTheConnection(t *testing.T) {
	for _, detached := range []bool{false, true} {
		const frame = "\x81\x83\x00\n\x00\nabc" // a masked text frame
		called, ended, logged := make(chan ratelimit.Client, 1), make(chan struct{}), t.TempDir()+"/access.log"
		w := serveTCP(t, func(c *Config) {
			c.AccessLog, _ = accesslog.Open(logged, slog.New(slog.DiscardHandler))
			c.Identity = ratelimit.NewIdentity(nil, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
			c.Upgrade = func(ctx *fasthttp.RequestCtx, client ratelimit.Client) {
				called <- client
				ctx.SetStatusCode(http.StatusSwitchingProtocols)
				ctx.Response.Header.Set("Connection", "Upgrade")
				ctx.Response.Header.Set("Upgrade", "websocket")
				ours := ctx.Conn().(*wire.Conn)
				echo := func(c net.Conn, early string) {
					defer close(ended)
					defer func() { _ = c.Close() }()
					_, _ = io.WriteString(c, early)
					_, _ = io.CopyN(c, c, int64(len(second)+len(frame)-len(early)))
				}
				ctx.Hijack(func(c net.Conn) {
					if !detached {
						echo(c, "")
						return
					}
					early := make([]byte, len(second)) // what came with the handshake is read before
					_, _ = io.ReadFull(c, early)
					go echo(ours.Detach(), string(early)) // the hijacker is over before more is read
				})
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
		if !detached {
			continue // the connection ends a moment later
		}
		ledgertest.Equal(t, w.server.Connections(), 0, "connections that are counted")
		over, end := context.WithCancel(t.Context())
		end()
		w.server.config.AccessLog.Run(over)
		lines := strings.Split(strings.TrimSpace(string(readFile(t, logged))), "\n")
		if len(lines) != 3 || strings.Contains(lines[1], "ended") || !strings.HasSuffix(lines[2], `,"socket":"ended"}`) {
			t.Errorf("the access log says %q, want a line for each answer and one for the end of the socket", lines)
		}
	}
}

// An upgrade handler hears of a connection that ends before its answer was written, once, and of no
// other.
func TestALostHandshakeIsTold(t *testing.T) {
	for _, lost := range []bool{true, false} {
		told, ended := make(chan bool, 2), make(chan bool)
		w := serveTCP(t, func(c *Config) {
			c.Upgrade = func(ctx *fasthttp.RequestCtx, _ ratelimit.Client) {
				ctx.SetStatusCode(http.StatusSwitchingProtocols)
				ours := ctx.Conn().(*wire.Conn)
				ours.IfLost(func() { told <- true })
				if lost {
					_ = ours.NetConn().Close()
				}
				ctx.Hijack(func(c net.Conn) {
					_ = ours.Detach().Close()
					close(ended)
				})
			}
		})
		c := w.dial("")
		send(t, c, "GET /api/ws/accounts HTTP/1.1\r\nHost: x\r\n"+strings.Join(handshake, "\r\n")+"\r\n\r\n")
		if lost {
			<-told
		} else {
			<-ended
		}
		_, _ = io.Copy(io.Discard, c)
		ledgertest.Equal(t, len(told), 0, "lost = %t: how often it was told once too often", lost)
	}
}
