package httpd

import (
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/httpd/ratelimit"
	"ledgerd/httpd/wire"
)

// handled returns a context that holds one request, and what has a server over a ledger answer it.
func handled(t testing.TB, l Ledger, target, accept string) (ctx *fasthttp.RequestCtx, ask func()) {
	t.Helper()
	s := New(Config{Ledger: l, Version: "0.1.0", PerMinute: ratelimit.MaxLimit, PerHour: ratelimit.MaxLimit})
	near, far := net.Pipe()
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	c := &wire.Conn{Conn: near, Peer: ratelimit.Peer{Client: ratelimit.Client{Key: netip.MustParseAddr("192.0.2.1")}}}
	ctx = new(fasthttp.RequestCtx)
	ctx.Init2(c, nil, false)
	return ctx, func() {
		ctx.Request.Reset()
		ctx.Response.Reset()
		ctx.ResetUserValues()
		ctx.Request.Header.SetMethod("GET")
		ctx.Request.SetRequestURI(target)
		ctx.Request.Header.Set("Host", "ledger")
		ctx.Request.Header.Set("Accept-Encoding", accept)
		ctx.Request.Header.Set("If-None-Match", `W/"0123456789abcdef"`)
		s.handle(ctx, c, nil)
	}
}

// TestRefusedQueriesAreNotParsed: what fasthttp parses a query into stays with the connection, 64 bytes and more for each parameter.
func TestRefusedQueriesAreNotParsed(t *testing.T) {
	if bubbletest.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, path := range []string{"/api/blocks/latest", "/api/health", "/api/ws/accounts", "/docs/search"} {
		ctx, ask := handled(t, newFakeLedger(), path+"?"+strings.Repeat("_&", 4000), "identity")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		ask()
		runtime.ReadMemStats(&after)
		if bytes := after.TotalAlloc - before.TotalAlloc; ctx.Response.StatusCode() != 400 || bytes > 32<<10 {
			t.Errorf("%s: status %d, %d bytes, want 400 and fewer than a connection is reckoned at", path, ctx.Response.StatusCode(), bytes)
		}
	}
}

// TestReadsOfOneRecordAllocateOnlyInTheRouter holds the whole handler to what fasthttp/router
// allocates for a variable of a path: identity, rate limit, parsing, question, body, headers and
// metrics allocate nothing.
func TestReadsOfOneRecordAllocateOnlyInTheRouter(t *testing.T) {
	if bubbletest.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	for target, want := range map[string]float64{
		"/api/account/" + whole.String(): 3,
		"/api/account/" + part.String() + "?commitment=confirmed&min_slot=20&wait_ms=10": 3,
		"/api/account/%34" + whole.String()[1:]:                                          6, // an escape is decoded by net/url
		"/api/account/" + whole.String() + "/balance":                                    3,
		"/api/transaction/" + testSignature(1).String():                                  3,
		"/api/blocks/28":      3,
		"/api/blocks/latest/": 0,
	} {
		ctx, ask := handled(t, newFakeLedger(), target, "gzip, zstd")
		if got := testing.AllocsPerRun(1000, ask); ctx.Response.StatusCode() != 200 || got > want {
			t.Errorf("%s: status %d, %v allocations a request, want 200 and at most %v", target, ctx.Response.StatusCode(), got, want)
		}
	}
}
