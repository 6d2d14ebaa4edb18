package httpd

import (
	"bufio"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"
)

// TestBatchesHoldWhatMayGoTogether cuts what one read brought.
func TestBatchesHoldWhatMayGoTogether(t *testing.T) {
	const (
		get     = "GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n"
		post    = "POST /api/health HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n"
		upgrade = "GET /api/ws/accounts HTTP/1.1\r\nHost: x\r\nuPGRADE: websocket\r\n\r\n"
		waits   = "GET /api/blocks/latest?min_slot=9&wait_ms=2000 HTTP/1.1\r\nHost: x\r\n\r\n"
		refused = "GET /api/health HTTP/9.9\r\nHost: x\r\n\r\n"
	)
	tests := map[string]struct {
		in      string
		bytes   int
		body    int
		verdict headVerdict
	}{
		"one":                   {get, len(get), 0, headAccepted},
		"three":                 {get + get + get, 3 * len(get), 0, headAccepted},
		"a part of the next":    {get + get[:10], len(get), 0, headAccepted},
		"a part":                {get[:10], 0, 0, headIncomplete},
		"one with a body":       {post + "abc" + get, len(post), 3, headAccepted},
		"a body at the end":     {get + post + "abc" + get, len(get + post), 3, headAccepted},
		"an upgrade":            {upgrade + get, len(upgrade), 0, headAccepted},
		"an upgrade at the end": {get + upgrade + get, len(get + upgrade), 0, headAccepted},
		"one that waits":        {waits + get, len(waits + get), 0, headAccepted},
		"one that waits later":  {get + waits + get, len(get), 0, headAccepted},
		"refused":               {refused + get, 0, 0, headMalformed},
		"refused later":         {get + get + refused + get, 2 * len(get), 0, headAccepted},
	}
	for name, tt := range tests {
		h, verdict := scanBatch([]byte(tt.in))
		if h.bytes != tt.bytes || h.body != tt.body || verdict != tt.verdict {
			t.Errorf("%s: %d bytes, body of %d, verdict %d, want %d, %d, %d", name, h.bytes, h.body, verdict, tt.bytes, tt.body, tt.verdict)
		}
	}
}

// TestARefusedHeadEndsABatch sends good requests, a bad one and a good one in one write: those
// before it are answered, then it is, and what is behind it is never executed.
func TestARefusedHeadEndsABatch(t *testing.T) {
	for name, tt := range map[string]struct {
		raw    string
		status int
	}{
		"unknown version":     {"GET /api/health HTTP/9.9\r\nHost: x\r\n\r\n", 400},
		"coding":              {"POST /api/health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		"host of no host":     {"GET /api/health HTTP/1.1\r\nHost: [::1\r\n\r\n", 400}, // conn accepts it, fasthttp does not
		"body of 64 KiB":      {"POST /api/health HTTP/1.1\r\nHost: x\r\nContent-Length: 65537\r\n\r\n", 413},
		"line of 8 KiB":       {"GET /" + strings.Repeat("a", 8192) + " HTTP/1.1\r\nHost: x\r\n\r\n", 414},
		"two empty lines":     {"\r\n\r\n", 400},
		"HEAD without a host": {"HEAD /api/health HTTP/1.1\r\n\r\n", 400},
	} {
		for _, before := range []int{1, 5, 40} { // 40 and the line are more than one read takes
			w := serveTCP(t, nil)
			raw := strings.Repeat(second, before) + tt.raw + second
			c := w.dial()
			if _, err := io.WriteString(c, raw); err != nil {
				t.Fatal(err)
			}
			from := bufio.NewReader(c)
			for i := range before {
				if r := readReply(t, from, "GET"); r.status != 200 {
					t.Fatalf("%s: answer %d of %d: status %d", name, i, before, r.status)
				}
			}
			method, _, _ := strings.Cut(tt.raw, " ")
			r := readReply(t, from, method)
			checkEvery(t, name, r)
			if rest, err := io.ReadAll(from); r.status != tt.status || len(rest) > 0 || err != nil {
				t.Errorf("%s behind %d: status %d, want %d and the end; then %q, %v", name, before, r.status, tt.status, rest, err)
			}
			if got := w.ledger.asked.Load(); got != int64(before) {
				t.Errorf("%s behind %d: %d questions were asked", name, before, got)
			}
		}
	}
}

// TestEveryRequestOfABatchIsCounted uses the rate limit up in the middle of a batch.
func TestEveryRequestOfABatchIsCounted(t *testing.T) {
	w := serveTCP(t, func(c *Config) { c.PerMinute = 3 })
	c := w.dial()
	if _, err := io.WriteString(c, strings.Repeat(second, 5)); err != nil {
		t.Fatal(err)
	}
	from := bufio.NewReader(c)
	for i, want := range []struct {
		status    int
		remaining string
	}{{200, "2"}, {200, "1"}, {200, "0"}, {429, "0"}, {429, "0"}} {
		r := readReply(t, from, "GET")
		checkEvery(t, "in a batch", r)
		if got := r.header.Get("X-RateLimit-Remaining"); r.status != want.status || got != want.remaining || (r.header.Get("Retry-After") != "") != (r.status == 429) {
			t.Errorf("answer %d: status %d, %s remaining, want %d and %s; Retry-After %q", i, r.status, got, want.status, want.remaining, r.header.Get("Retry-After"))
		}
	}
	if got := w.ledger.asked.Load(); got != 3 {
		t.Errorf("%d questions were asked, want 3", got)
	}
}

// TestHeadAndCloseInsideABatch puts a HEAD and a last request where others follow.
func TestHeadAndCloseInsideABatch(t *testing.T) {
	w := serveTCP(t, nil)
	c := w.dial()
	raw := second + "HEAD" + second[len("GET"):] + second +
		"GET /api/blocks/latest HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Close\r\n\r\n" + second
	if _, err := io.WriteString(c, raw); err != nil {
		t.Fatal(err)
	}
	from := bufio.NewReader(c)
	for i, method := range []string{"GET", "HEAD", "GET", "GET"} {
		r := readReply(t, from, method)
		checkEvery(t, method, r)
		if r.status != 200 || (r.body == "") != (method == "HEAD") || r.header.Get("Content-Length") == "0" {
			t.Errorf("answer %d: status %d, length %s, body %q", i, r.status, r.header.Get("Content-Length"), r.body)
		}
	}
	if rest, err := io.ReadAll(from); len(rest) > 0 || err != nil {
		t.Errorf("behind the last request: %q, %v", rest, err)
	}
	if got := w.ledger.asked.Load(); got != 4 {
		t.Errorf("%d questions were asked, want 4", got)
	}
}

// TestBytesBehindAnUpgradeAreNoRequests upgrades in the middle of a batch: what follows goes to
// the new owner of the connection as it was sent, also where it reads like a request.
func TestBytesBehindAnUpgradeAreNoRequests(t *testing.T) {
	got := make(chan string, 1)
	w := serveTCP(t, func(c *Config) {
		c.Upgrade = func(ctx *fasthttp.RequestCtx, _ netip.Addr, _ bool) {
			ctx.SetStatusCode(fasthttp.StatusSwitchingProtocols)
			ctx.Hijack(func(c net.Conn) {
				b := make([]byte, len(second))
				_, _ = io.ReadFull(c, b)
				got <- string(b)
			})
		}
	})
	c := w.dial()
	raw := second + "GET /api/ws/accounts HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n" + second
	if _, err := io.WriteString(c, raw); err != nil {
		t.Fatal(err)
	}
	from := bufio.NewReader(c)
	var statuses []int
	for range 2 {
		statuses = append(statuses, readReply(t, from, "GET").status)
	}
	if !slices.Equal(statuses, []int{200, 101}) {
		t.Fatalf("statuses %v", statuses)
	}
	if b := <-got; b != second {
		t.Errorf("the new owner read %q", b)
	}
	if got := w.ledger.asked.Load(); got != 1 {
		t.Errorf("%d questions were asked, want 1", got)
	}
}

// countingListener counts the writes to its connections.
type countingListener struct {
	net.Listener
	writes atomic.Int64
}

type countingConn struct {
	net.Conn
	writes *atomic.Int64
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countingConn{c, &l.writes}, err
}

func (c countingConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// TestAnswersOfABatchLeaveInOneWrite sends sixteen requests for an account at once.
func TestAnswersOfABatchLeaveInOneWrite(t *testing.T) {
	ln := fasthttputil.NewInmemoryListener()
	counting := &countingListener{Listener: ln}
	runUntilEnd(t, New(Config{Ledger: newFakeLedger(), Version: "0.1.0", PerMinute: maxCount}).acceptor, counting)
	c, err := ln.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	from := bufio.NewReader(c)
	for range 3 {
		if _, err := io.WriteString(c, strings.Repeat("GET /api/account/"+whole.String()+" HTTP/1.1\r\nHost: x\r\n\r\n", 16)); err != nil {
			t.Fatal(err)
		}
		for range 16 {
			if r := readReply(t, from, "GET"); r.status != 200 {
				t.Fatalf("status %d", r.status)
			}
		}
	}
	if got := counting.writes.Load(); got != 3 {
		t.Errorf("%d writes for 3 batches", got)
	}
}
