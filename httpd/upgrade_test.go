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
)

var handshake = []string{"Connection: keep-alive, Upgrade", "Upgrade: WebSocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA=="}

// TestUpgradeHandsOverTheConnection upgrades with frames right behind the handshake, in
// the same write: they go to the new owner as they are, whether they look like requests
// or not, through fasthttp's connection and through ours.
func TestUpgradeHandsOverTheConnection(t *testing.T) {
	for _, detached := range []bool{false, true} {
		testUpgrade(t, detached)
	}
}

// TestUpgradeWaitsForTheFirstHead refuses sockets while there is nothing they could be told.
func TestUpgradeWaitsForTheFirstHead(t *testing.T) {
	w := serveTCP(t, func(c *Config) {
		c.Ledger = &fakeLedger{}
		c.Upgrade = func(*fasthttp.RequestCtx, netip.Addr, bool) { t.Error("upgraded") }
	})
	c := w.dial()
	if _, err := io.WriteString(c, "GET /api/ws/accounts HTTP/1.1\r\nHost: x\r\n"+strings.Join(handshake, "\r\n")+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if r := readReply(t, bufio.NewReader(c), "GET"); r.status != 503 || r.header.Get("Retry-After") == "" {
		t.Errorf("status %d, Retry-After %q, want 503", r.status, r.header.Get("Retry-After"))
	}
}

func testUpgrade(t *testing.T, detached bool) {
	t.Helper()
	const frame = "\x81\x83\x00\n\x00\nabc" // a masked text frame
	type caller struct {
		client netip.Addr
		exempt bool
	}
	called, ended := make(chan caller, 1), make(chan struct{})
	w := serveTCP(t, func(c *Config) {
		c.Exempt = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		c.Upgrade = func(ctx *fasthttp.RequestCtx, client netip.Addr, exempt bool) {
			called <- caller{client, exempt}
			ctx.SetStatusCode(http.StatusSwitchingProtocols)
			ctx.Response.Header.Set("Connection", "Upgrade")
			ctx.Response.Header.Set("Upgrade", "websocket")
			ours := ctx.Conn().(*conn)
			echo := func(c net.Conn) {
				defer close(ended)
				defer func() { _ = c.Close() }()
				_, _ = io.CopyN(c, c, int64(len(second)+len(frame)))
			}
			ctx.Hijack(func(c net.Conn) {
				if !detached {
					echo(c)
					return
				}
				go echo(ours.Detach()) // the hijacker is over before anything is read
			})
		}
	})
	c := w.dial()
	if _, err := io.WriteString(c, "GET /api/ws/accounts?mode=none HTTP/1.1\r\nHost: x\r\n"+strings.Join(handshake, "\r\n")+"\r\n\r\n"+second); err != nil {
		t.Fatal(err)
	}
	from := bufio.NewReader(c)
	r := readReply(t, from, "GET")
	checkEvery(t, "upgrade", r)
	checkDocument(t, "GET", "/api/ws/accounts", r)
	if r.status != 101 || r.header.Get("Upgrade") != "websocket" || r.header.Get("X-Ledger-Slot") != "30" {
		t.Errorf("status %d, headers %v", r.status, r.header)
	}
	if got := <-called; got.client != netip.MustParseAddr("127.0.0.1") || !got.exempt {
		t.Errorf("the handler was called for %v", got)
	}
	if _, err := io.WriteString(c, frame); err != nil {
		t.Fatal(err)
	}
	echo, err := io.ReadAll(from)
	if err != nil || string(echo) != second+frame {
		t.Errorf("the new owner got %q, %v, want the bytes as sent", echo, err)
	}
	<-ended
	if got := w.server.connections(); got != 0 && detached {
		t.Errorf("%d connections are counted, want 0", got)
	}
	if got := w.ledger.asked.Load(); got != 0 {
		t.Errorf("%d of its bytes were executed as requests", got)
	}
	if got := w.server.meters.requests[routeSocket][0].Load(); got != 1 {
		t.Errorf("counted %d upgrades, want 1", got)
	}
}

func TestARefusedUpgradeCarriesEveryHeader(t *testing.T) {
	h := serve(t, func(c *Config) {
		c.Upgrade = func(ctx *fasthttp.RequestCtx, _ netip.Addr, _ bool) {
			ctx.Error(errorBody(503, "the server is full"), 503) // drops what was set before
			ctx.SetContentType("application/json")
			ctx.Response.Header.Set("Retry-After", "5")
		}
	})
	r := h.get("/api/ws/accounts", handshake...)
	if r.status != 503 || r.body != errorBody(503, "the server is full") || r.header.Get("Retry-After") != "5" {
		t.Errorf("%d %s %v", r.status, r.body, r.header)
	}
	h = serve(t, func(c *Config) {
		c.Upgrade = func(ctx *fasthttp.RequestCtx, _ netip.Addr, _ bool) {
			ctx.SetStatusCode(429)
			ctx.SetContentType("application/json")
			ctx.SetBodyString(errorBody(429, "too many WebSockets"))
		}
	})
	if r := h.get("/api/ws/accounts", handshake...); r.status != 429 || r.body != errorBody(429, "too many WebSockets") || r.header.Get("Retry-After") != "1" {
		t.Errorf("%d %s %v", r.status, r.body, r.header)
	}
	h = serve(t, nil)
	if r := h.get("/api/ws/accounts", handshake...); r.status != 503 {
		t.Errorf("without a handler: %d, want 503", r.status)
	}
}

func TestInvalidHandshakesAreRefused(t *testing.T) {
	h := serve(t, func(c *Config) {
		c.Upgrade = func(*fasthttp.RequestCtx, netip.Addr, bool) { t.Error("the handler was called") }
	})
	replace := func(i int, line string) []string {
		lines := append([]string(nil), handshake...)
		lines[i] = line
		return lines
	}
	for name, lines := range map[string][]string{
		"nothing":         nil,
		"no connection":   replace(0, "X: y"),
		"connection":      replace(0, "Connection: keep-alive"),
		"no upgrade":      replace(1, "X: y"),
		"another upgrade": replace(1, "Upgrade: h2c"),
		"no version":      replace(2, "X: y"),
		"version 8":       replace(2, "Sec-WebSocket-Version: 8"),
		"no key":          replace(3, "X: y"),
		"empty key":       replace(3, "Sec-WebSocket-Key:"),
		"short key":       replace(3, "Sec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4P"),
		"long key":        replace(3, "Sec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEBES"),
		"key of no bytes": replace(3, "Sec-WebSocket-Key: !QIDBAUGBwgJCgsMDQ4PEA=="),
	} {
		if r := h.get("/api/ws/accounts", lines...); r.status != 400 || r.body != errorBody(400, string(errUpgrade)) {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	if r := h.do("HEAD", "/api/ws/accounts", handshake...); r.status != 400 {
		t.Errorf("HEAD: %d, want 400", r.status)
	}
}
