package httpd

import (
	"bufio"
	"net"
	"net/netip"
	"strconv"
	"testing"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"ledgerd/engine/ledger/bubble"
)

// handled returns a server and a context that holds one request, for handlers that are
// called directly.
func handled(t testing.TB, target string) (*Server, *fasthttp.RequestCtx) {
	t.Helper()
	s := New(Config{Ledger: newFakeLedger(), Version: "0.1.0", PerMinute: maxCount, PerHour: maxCount})
	near, far := net.Pipe()
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	ctx := new(fasthttp.RequestCtx)
	c := &conn{Conn: near, release: func(*conn) {}, settled: func(int) {}, peer: peer{client: client{key: netip.MustParseAddr("192.0.2.1")}}}
	ctx.Init2(c, errorCounter{new(paddedCounter)}, false)
	ctx.Request.Header.SetMethod("GET")
	ctx.Request.SetRequestURI(target)
	ctx.Request.Header.Set("Accept-Encoding", "gzip, zstd")
	ctx.Request.Header.Set("If-None-Match", `W/"0123456789abcdef"`)
	return s, ctx
}

// TestReadsOfOneRecordAllocateNothing holds the whole handler to it: identity, rate
// limit, routing, parsing, question, body, headers and metrics.
func TestReadsOfOneRecordAllocateNothing(t *testing.T) {
	if bubble.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, target := range []string{
		"/api/account/" + whole.String(),
		"/api/account/" + part.String() + "?commitment=confirmed&min_slot=20&wait_ms=10",
		"/api/account/%34" + whole.String()[1:],
		"/api/account/" + whole.String() + "/balance",
		"/api/transaction/" + testSignature(1).String(),
		"/api/blocks/28",
		"/api/blocks/latest",
	} {
		s, ctx := handled(t, target)
		allocations := testing.AllocsPerRun(1000, func() {
			ctx.Response.Reset()
			s.handle(ctx)
		})
		if status := ctx.Response.StatusCode(); status != 200 || allocations != 0 {
			t.Errorf("%s: status %d, %v allocations a request, want 200 and none", target, status, allocations)
		}
	}
}

// BenchmarkAccountHandler is the handler alone.
func BenchmarkAccountHandler(b *testing.B) {
	s, ctx := handled(b, "/api/account/"+whole.String())
	b.ReportAllocs()
	for b.Loop() {
		ctx.Response.Reset()
		s.handle(ctx)
	}
}

// BenchmarkAccountServed is one keep-alive connection in memory, beside a bare fasthttp
// handler with the same body and the same timeouts: the difference is ours.
func BenchmarkAccountServed(b *testing.B) {
	l := newFakeLedger()
	a := l.accounts[whole]
	body := appendAccount(nil, &a)
	servers := map[string]func(net.Listener) error{
		"ledgerd": func(ln net.Listener) error { return New(Config{Ledger: l, Version: "0.1.0"}).Serve(ln) },
		"bare": (&fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
			ctx.SetContentType("application/json")
			ctx.SetBody(body)
		}, ReadTimeout: defaultReadTimeout, WriteTimeout: defaultWriteTimeout, IdleTimeout: defaultIdleTimeout}).Serve,
	}
	for name, serveOn := range servers {
		b.Run(name, func(b *testing.B) {
			ln := fasthttputil.NewInmemoryListener()
			defer func() { _ = ln.Close() }()
			go func() { _ = serveOn(ln) }()
			c, err := ln.Dial()
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			request := []byte("GET /api/account/" + whole.String() + " HTTP/1.1\r\nHost: ledger\r\n\r\n")
			from := bufio.NewReaderSize(c, 4096)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Write(request); err != nil {
					b.Fatal(err)
				}
				skipResponse(b, from)
			}
		})
	}
}

// skipResponse reads one response without allocating.
func skipResponse(b *testing.B, from *bufio.Reader) {
	length := 0
	for {
		line, err := from.ReadSlice('\n')
		if err != nil {
			b.Fatal(err)
		}
		if len(line) == 2 {
			break
		}
		if value, ok := cutField(line, "Content-Length: "); ok {
			if length, err = strconv.Atoi(value); err != nil {
				b.Fatal(err)
			}
		}
	}
	if n, err := from.Discard(length); err != nil {
		b.Fatalf("%d of %d body bytes: %v", n, length, err)
	}
}

func cutField(line []byte, name string) (string, bool) {
	if len(line) < len(name)+2 || string(line[:len(name)]) != name {
		return "", false
	}
	return string(line[len(name) : len(line)-2]), true
}

// BenchmarkScanHead is the check that stands before fasthttp's own parser, on a head as a
// browser sends it.
func BenchmarkScanHead(b *testing.B) {
	head := []byte("GET /api/account/" + whole.String() + " HTTP/1.1\r\nHost: ledger.example.org\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\nAccept: */*\r\nAccept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br, zstd\r\nOrigin: https://example.org\r\nConnection: keep-alive\r\n\r\n")
	b.SetBytes(int64(len(head)))
	b.ReportAllocs()
	for b.Loop() {
		if _, verdict := scanHead(head); verdict != headAccepted {
			b.Fatal(verdict)
		}
	}
}

// BenchmarkRecent is a page of the default size, compressed and not.
func BenchmarkRecent(b *testing.B) {
	for _, accept := range []string{"identity", "gzip", "zstd"} {
		b.Run(accept, func(b *testing.B) {
			s, ctx := handled(b, "/api/transactions/recent")
			ctx.Request.Header.Set("Accept-Encoding", accept)
			b.ReportAllocs()
			for b.Loop() {
				ctx.Response.Reset()
				s.handle(ctx)
			}
			b.ReportMetric(float64(len(ctx.Response.Body())), "body-bytes")
		})
	}
}
