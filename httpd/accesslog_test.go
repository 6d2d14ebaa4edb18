package httpd

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/accesslog"
	"ledgerd/httpd/ratelimit"
	"ledgerd/httpd/wire"
)

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
