package httpd

import (
	"bufio"
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/accesslog"
	"ledgerd/httpd/apikey"
	"ledgerd/httpd/ratelimit"
)

// G11: TestTheAccessLogHasALineForEachAnswer sends the requests of testdata in the order of their names. The log has nothing of their
// queries, headers and keys, and nothing at all of a head that was refused.
func TestTheAccessLogHasALineForEachAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	log, err := accesslog.Open(path, slog.New(slog.DiscardHandler))
	must(t, err)
	key, hash := apikey.New()
	h := serve(t, func(c *Config) {
		c.AccessLog, c.PerMinute, c.PerHour, c.Keys = log, 13, 100, apikey.NewRing(apikey.Tier{}, now)
		c.Keys.Load(&apikey.File{Tiers: map[string]apikey.Tier{"gold": {}}, Keys: []apikey.Entry{{Name: "dora", Tier: "gold", Hash: hash}}})
		c.Identity = &ratelimit.Identity{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
		c.Upgrade = func(ctx *fasthttp.RequestCtx, _ ratelimit.Client) { ctx.SetStatusCode(101) }
	})
	requests := requestsOf(t, "access")
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		c := h.dial("10.0.0.1")
		send(t, c, strings.ReplaceAll(requests[name].raw, "KEY", key))
		method, _, _ := strings.Cut(requests[name].raw, " ")
		ledgertest.Equal(t, readReply(t, bufio.NewReader(c), method).status, requests[name].status, "%s: status", name)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	log.Run(ended)
	got, err := os.ReadFile(path)
	must(t, err)
	if *update {
		must(t, os.WriteFile("testdata/access.log", got, 0o644))
	}
	want, err := os.ReadFile("testdata/access.log")
	must(t, err)
	ledgertest.Equal(t, string(got), string(want), "the lines")
}
