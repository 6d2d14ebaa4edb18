package httpd

import (
	"bufio"
	"context"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/accesslog"
	"ledgerd/httpd/apikey"
	"ledgerd/httpd/ratelimit"
	"ledgerd/httpd/wire"
)

// G11: TestTheAccessLogHasALineForEachAnswer sends the requests of testdata in the order of their names. The log has nothing of their
// queries and keys, of their headers only what names the request, and nothing at all of a head that was refused.
func TestTheAccessLogHasALineForEachAnswer(t *testing.T) {
	path, at := t.TempDir()+"/access.log", now
	h := serveLimits(t, []string{"14", "100"}, &at)
	c := &h.server.config
	c.AccessLog, _ = accesslog.Open(path, slog.New(slog.DiscardHandler))
	c.Upgrade = func(ctx *fasthttp.RequestCtx, _ ratelimit.Client) { ctx.SetStatusCode(101) }
	key, hash := apikey.New()
	c.Keys = apikey.NewRing(apikey.Tier{}, now)
	c.Keys.Load(&apikey.File{Tiers: map[string]apikey.Tier{"gold": {}}, Keys: []apikey.Entry{{Name: "dora", Tier: "gold", Hash: hash}}})
	requests := requestsOf(t, "access")
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		conn, raw := h.dial("10.0.0.1"), requests[name].raw
		send(t, conn, strings.ReplaceAll(raw, "KEY", key))
		ledgertest.Equal(t, readReply(t, bufio.NewReader(conn), strings.Fields(raw)[0]).status, requests[name].status, "%s: status", name)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	c.AccessLog.Run(ended)
	want := readFile(t, "testdata/access.log")
	got := readFile(t, path)
	ledgertest.Equal(t, string(got), string(want), "the lines")
}

// The end of a WebSocket has a line of its own.
func TestTheAccessLogTellsHowLongASocketLived(t *testing.T) {
	path, own := t.TempDir()+"/access.log", make(chan net.Conn, 1)
	var log *accesslog.Log
	w := serveTCP(t, func(c *Config) {
		c.AccessLog, _ = accesslog.Open(path, slog.New(slog.DiscardHandler))
		log = c.AccessLog
		c.Upgrade = func(ctx *fasthttp.RequestCtx, _ ratelimit.Client) {
			ctx.SetStatusCode(http.StatusSwitchingProtocols)
			ours := ctx.Conn().(*wire.Conn)
			ctx.Hijack(func(net.Conn) { own <- ours.Detach() })
		}
	})
	send(t, w.dial(""), "GET /api/ws/accounts HTTP/1.1\r\nHost: x\r\n"+strings.Join(handshake, "\r\n")+"\r\n\r\n")
	ledgertest.Must(t, (<-own).Close())
	ended, end := context.WithCancel(t.Context())
	end()
	log.Run(ended)
	lines := strings.Split(strings.TrimSpace(string(readFile(t, path))), "\n")
	if len(lines) != 2 || strings.Contains(lines[0], "ended") || !strings.HasSuffix(lines[1], `,"socket":"ended"}`) {
		t.Errorf("the lines are %q, want one for the answer and one for the end", lines)
	}
}
