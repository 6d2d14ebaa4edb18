package httpd

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/ratelimit"
	"ledgerd/httpd/wire"
)

var handshake = []string{"Connection: keep-alive, Upgrade", "Upgrade: WebSocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA=="}

// G4, G5: TestUpgradeHandsOverTheConnection upgrades with frames right behind the handshake, in
// the same write: they go to the new owner as they are, whether they look like requests
// or not, through fasthttp's connection and through ours.
func TestUpgradeHandsOverTheConnection(t *testing.T) {
	for _, detached := range []bool{false, true} {
		const frame = "\x81\x83\x00\n\x00\nabc" // a masked text frame
		called, ended := make(chan ratelimit.Client, 1), make(chan struct{})
		w := serveTCP(t, func(c *Config) {
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
		if got := w.server.Connections(); got != 0 && detached {
			t.Errorf("%d connections are counted, want 0", got)
		}
		ledgertest.Equal(t, w.ledger.asked.Load(), 1, "questions asked, none of what followed")
		ledgertest.Equal(t, w.server.routes[len(w.server.routes)-1].requests[0].Load(), 1, "upgrades counted")
	}
}

// TestRefusedUpgradesCarryEveryHeader refuses sockets while there is nothing they could be told: before the first head, while the
// upgrade handler has nothing to answer yet, and where there is no handler. And a handler may refuse one itself. A plain GET is told the same.
func TestRefusedUpgradesCarryEveryHeader(t *testing.T) {
	upgrade := func(*fasthttp.RequestCtx, ratelimit.Client) { t.Error("upgraded") }
	refusing := func(status int, given string) func(*Config) {
		return func(c *Config) {
			c.Upgrade = func(ctx *fasthttp.RequestCtx, _ ratelimit.Client) {
				ctx.Error(errorBody(status, "too many WebSockets"), status) // drops what was set before
				ctx.SetContentType("application/json")
				if given != "" {
					ctx.Response.Header.Set("Retry-After", given)
				}
			}
		}
	}
	for name, tt := range map[string]struct {
		change  func(*Config)
		status  int
		details string
		retry   string
	}{
		"no head":     {func(c *Config) { c.Ledger, c.Upgrade = &fakeLedger{}, upgrade }, 503, "overloaded", "1"},
		"not yet":     {func(c *Config) { c.Upgrade, c.MayUpgrade = upgrade, func() bool { return false } }, 503, "overloaded", "1"},
		"no handler":  {nil, 503, "overloaded", "1"},
		"by it":       {refusing(429, ""), 429, "too many WebSockets", "1"},
		"by it, when": {refusing(503, "5"), 503, "too many WebSockets", "5"},
	} {
		h := serve(t, func(c *Config) {
			if tt.change != nil {
				tt.change(c)
			}
			refuse := c.Upgrade
			c.Refuse = func(ctx *fasthttp.RequestCtx, client ratelimit.Client) bool { refuse(ctx, client); return true }
		})
		for _, lines := range [][]string{handshake, nil} {
			r := h.get("/api/ws/accounts", lines...)
			if r.status != tt.status || r.body != errorBody(tt.status, tt.details) || r.header.Get("Retry-After") != tt.retry {
				t.Errorf("%s, %d lines: %d %s, Retry-After %q, want %d and %q", name, len(lines), r.status, r.body, r.header.Get("Retry-After"), tt.status, tt.retry)
			}
		}
	}
}

// G15: TestInvalidHandshakesAreRefused checks every part of one. The options of a connection may be on
// any line (RFC 9110, section 5.3).
func TestInvalidHandshakesAreRefused(t *testing.T) {
	h := serve(t, func(c *Config) {
		c.Upgrade = func(ctx *fasthttp.RequestCtx, _ ratelimit.Client) {
			ctx.Error(errorBody(429, "reached"), 429)
			ctx.SetContentType("application/json")
		}
	})
	bodies := map[int]string{400: errorBody(400, string(errUpgrade)), 429: errorBody(429, "reached")}
	for name, tt := range requestsOf(t, "handshakes") {
		c := h.dial("")
		send(t, c, tt.raw)
		if r := readReply(t, bufio.NewReader(c), "GET"); r.status != tt.status || r.body != bodies[tt.status] {
			t.Errorf("%s: %d %s, want %d", name, r.status, r.body, tt.status)
		}
	}
	ledgertest.Equal(t, h.do("HEAD", "/api/ws/accounts", handshake...).status, 400, "HEAD")
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
