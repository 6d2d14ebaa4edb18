package httpd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
)

// twin is one of two servers that are asked the same, of which the other answers nothing
// directly.
type twin struct {
	*testing.T
	server *Server
	ledger *fakeLedger
	ln     *fasthttputil.InmemoryListener
	direct atomic.Int64 // how many were answered so
}

func twins(t *testing.T, change func(*Config)) (pair [2]*twin) {
	t.Helper()
	for i := range pair {
		w := &twin{T: t, ledger: newFakeLedger(), ln: fasthttputil.NewInmemoryListener()}
		config := Config{Ledger: w.ledger, Version: "0.1.0", Now: func() time.Time { return now }}
		if change != nil {
			change(&config)
		}
		w.server = New(config)
		answer := w.server.direct
		w.server.config.direct = func(c *conn, head []byte) directOutcome {
			outcome := answer(c, head)
			if outcome != notDirect {
				w.direct.Add(1)
			}
			return outcome
		}
		if i == 1 {
			w.server.config.direct = nil
		}
		runUntilEnd(t, w.server.acceptor, w.ln)
		pair[i] = w
	}
	return pair
}

// known returns a connection that was answered once, to HEAD, as nothing else counts that.
func (w *twin) known() net.Conn {
	w.Helper()
	c, err := w.ln.DialWithLocalAddr(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		w.Fatal(err)
	}
	w.ask(c, "HEAD /api/health HTTP/1.1\r\nHost: x\r\n\r\n")
	return c
}

var dateLine = regexp.MustCompile(`\r\nDate: [A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\r\n`)

// ask returns the bytes of an answer, but for the date.
func (w *twin) ask(c net.Conn, raw string) string {
	w.Helper()
	if _, err := io.WriteString(c, raw); err != nil {
		w.Fatalf("%q: %v", raw, err)
	}
	var text bytes.Buffer
	method, _, _ := strings.Cut(raw, " ")
	r, err := http.ReadResponse(bufio.NewReader(io.TeeReader(c, &text)), &http.Request{Method: method})
	if err != nil {
		w.Fatalf("%q: %v", raw, err)
	}
	if _, err = io.ReadAll(r.Body); err != nil {
		w.Fatalf("%q: body: %v", raw, err)
	}
	if n := len(dateLine.FindAllString(text.String(), -1)); n != 1 {
		w.Errorf("%q: %d dates in %q", raw, n, text.String())
	}
	return dateLine.ReplaceAllString(text.String(), "\r\nDate\r\n")
}

// end ends a connection, after which everything about it is counted.
func (w *twin) end(c net.Conn) {
	w.Helper()
	_ = c.Close()
	eventually(w.T, "the connection is gone", func() bool { return w.server.connections() == 0 })
}

// endBoth ends the connections of both, which must have counted the same.
func endBoth(t *testing.T, pair [2]*twin, conns [2]net.Conn) {
	t.Helper()
	for i, w := range pair {
		w.end(conns[i])
	}
	if got, want := pair[0].counted(), pair[1].counted(); got != want {
		t.Errorf("counted\n%s, fasthttp\n%s", got, want)
	}
}

// counted returns the lines that count something.
func (w *twin) counted() (lines string) {
	var all bytes.Buffer
	w.server.writeMetrics(&all)
	for line := range strings.Lines(all.String()) {
		if !strings.Contains(line, "duration") && !strings.HasPrefix(line, "#") && !strings.HasSuffix(line, " 0\n") {
			lines += line
		}
	}
	return lines
}

// askBoth has both answer the same, and to the letter.
func askBoth(t *testing.T, pair [2]*twin, conns [2]net.Conn, raw string) (answer string) {
	t.Helper()
	answer = pair[0].ask(conns[0], raw)
	if want := pair[1].ask(conns[1], raw); answer != want {
		t.Errorf("%q:\n%q, fasthttp\n%q", raw, answer, want)
	}
	if got, want := pair[0].ledger.asked.Load(), pair[1].ledger.asked.Load(); got != want {
		t.Errorf("%q: asked the ledger %d times, fasthttp %d", raw, got, want)
	}
	return answer
}

func plainGet(key string, fields ...string) string {
	return "GET /api/account/" + key + " HTTP/1.1\r\nHost: ledger:80\r\n" + strings.Join(fields, "") + "\r\n"
}

// TestDirectAnswersAreThoseOfFasthttp asks for what is answered directly and for what only looks
// like it.
func TestDirectAnswersAreThoseOfFasthttp(t *testing.T) {
	key := whole.String()
	tag := `W/"` + strings.Repeat("0", 16) + `"`
	for name, row := range map[string]struct {
		raw    string
		direct bool
	}{
		"plain":              {plainGet(key), true},
		"partial":            {plainGet(part.String()), true},
		"what browsers send": {plainGet(key, "User-Agent: x\r\n", "Accept: */*\r\n", "Accept-Encoding: gzip, zstd\r\n", "Cookie: a=b\r\n", "X-Odd: \xff\xfe\r\n"), true},
		"untrusted proxy":    {plainGet(key, "X-Forwarded-For: 198.51.100.1\r\n"), true},
		"no host":            {"GET /api/account/" + key + " HTTP/1.1\r\nHost:\r\n\r\n", false},
		"odd host":           {"GET /api/account/" + key + " HTTP/1.1\r\nHost: a b%\r\n\r\n", false},
		"HTTP/1.0":           {"GET /api/account/" + key + " HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n\r\n", false},
		"HEAD":               {"HEAD /api/account/" + key + " HTTP/1.1\r\nHost: x\r\n\r\n", false},
		"OPTIONS":            {"OPTIONS /api/account/" + key + " HTTP/1.1\r\nHost: x\r\n\r\n", false},
		"line before":        {"\r\n" + plainGet(key), false},
		"slash behind":       {plainGet(key + "/"), false},
		"query":              {plainGet(key + "?commitment=finalized"), false},
		"empty query":        {plainGet(key + "?"), false},
		"balance":            {plainGet(key + "/balance"), false},
		"escape":             {plainGet("%34" + key[1:]), false},
		"no key":             {plainGet("x"), false},
		"long key":           {plainGet(strings.Repeat("1", 60)), false},
		"zero key":           {plainGet(strings.Repeat("1", 32)), false},
		"absolute":           {"GET http://x/api/account/" + key + " HTTP/1.1\r\nHost: x\r\n\r\n", false},
		"missing":            {plainGet(missing.String()), false},
		"closed":             {plainGet(closed.String()), false},
		"tag":                {plainGet(key, "If-None-Match: *\r\n"), false},
		"another tag":        {plainGet(key, "if-none-match: "+tag+"\r\n"), false},
		"close":              {plainGet(key, "Connection: close\r\n"), false},
		"keep":               {plainGet(key, "CONNECTION: keep-alive\r\n"), false},
		"no body":            {plainGet(key, "Content-Length: 0\r\n"), false},
		"expect":             {plainGet(key, "Expect: 200-ok\r\n"), false},
		"trailer":            {plainGet(key, "Trailer: Content-Length\r\n"), false},
	} {
		t.Run(name, func(t *testing.T) {
			pair := twins(t, func(c *Config) { c.PerMinute, c.PerHour = 100, 1000 })
			conns := [2]net.Conn{pair[0].known(), pair[1].known()}
			askBoth(t, pair, conns, row.raw)
			endBoth(t, pair, conns)
			if got := pair[0].direct.Load() == 1; got != row.direct {
				t.Errorf("answered directly: %v, want %v", got, row.direct)
			}
		})
	}
}

// TestDirectRequestsAreCounted asks until the limit is reached, and then on.
func TestDirectRequestsAreCounted(t *testing.T) {
	pair := twins(t, func(c *Config) { c.PerMinute = 4 })
	conns := [2]net.Conn{pair[0].known(), pair[1].known()}
	for i := range 6 {
		answer := askBoth(t, pair, conns, plainGet(whole.String()))
		if got, want := strings.HasPrefix(answer, "HTTP/1.1 200 "), i < 3; got != want {
			t.Errorf("answer %d: %q", i, answer)
		}
	}
	endBoth(t, pair, conns)
	if got := pair[0].direct.Load(); got != 3 {
		t.Errorf("%d were answered directly, want 3", got)
	}
}

// TestFaultsOfDirectRequestsAreAnsweredOnce has the ledger fail and panic.
func TestFaultsOfDirectRequestsAreAnsweredOnce(t *testing.T) {
	pair := twins(t, nil)
	conns := [2]net.Conn{pair[0].known(), pair[1].known()}
	set := func(panics bool, err error) {
		for _, w := range pair {
			w.ledger.panics, w.ledger.err = panics, err
		}
	}
	for _, row := range []struct {
		panics bool
		err    error
		status string
	}{{false, ledger.ErrUnavailable, "503"}, {false, errors.New("x"), "500"}, {true, nil, "500"}, {false, nil, "200"}} {
		set(row.panics, row.err)
		if answer := askBoth(t, pair, conns, plainGet(whole.String())); !strings.HasPrefix(answer, "HTTP/1.1 "+row.status+" ") {
			t.Errorf("%+v: %q", row, answer)
		}
	}
	endBoth(t, pair, conns)
}

// TestTrustedProxiesAreNotAnsweredDirectly as another field says who asks.
func TestTrustedProxiesAreNotAnsweredDirectly(t *testing.T) {
	pair := twins(t, func(c *Config) {
		c.PerMinute, c.TrustedProxies = 10, []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	})
	conns := [2]net.Conn{pair[0].known(), pair[1].known()}
	for range 3 {
		askBoth(t, pair, conns, plainGet(whole.String(), "X-Forwarded-For: 198.51.100.1\r\n"))
	}
	endBoth(t, pair, conns)
	if got := pair[0].direct.Load(); got != 0 {
		t.Errorf("%d were answered directly", got)
	}
}

// TestShutdownLetsDirectAnswersEnd ends a server while a question waits: fasthttp takes its
// connection for an idle one.
func TestShutdownLetsDirectAnswersEnd(t *testing.T) {
	slow := &slowLedger{fakeLedger: newFakeLedger(), entered: make(chan struct{}), leave: make(chan struct{})}
	pair := twins(t, func(c *Config) { c.Ledger, c.Now = slow, nil })
	w := pair[0]
	c, idle := w.known(), w.known()
	if _, err := io.WriteString(c, plainGet(whole.String())); err != nil {
		t.Fatal(err)
	}
	<-slow.entered
	stopped := make(chan error, 1)
	go func() { stopped <- w.server.Shutdown(context.Background()) }()
	if _, err := io.ReadAll(idle); err != nil { // it is closed as idle connections are
		t.Fatal(err)
	}
	close(slow.leave)
	all, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 200 ") || !strings.Contains(string(all), "\r\nConnection: close\r\n\r\n{") {
		t.Errorf("the exchange under way got %q, %v", all, err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Shutdown = %v", err)
	}
	if w.direct.Load() != 1 || w.server.connections() != 0 {
		t.Errorf("%d were answered directly, %d connections are left", w.direct.Load(), w.server.connections())
	}
}

// sink is a connection that takes everything.
type sink struct{ net.Conn }

func (sink) Write(p []byte) (int, error)      { return len(p), nil }
func (sink) SetWriteDeadline(time.Time) error { return nil }

func directly(t testing.TB) (s *Server, c *conn, head []byte) {
	s = New(Config{Ledger: newFakeLedger(), Version: "0.1.0", PerMinute: maxCount, PerHour: maxCount})
	c = &conn{
		Conn: sink{}, timeouts: timeouts{write: time.Second}, stopped: new(atomic.Bool),
		peer: peer{client: client{key: netip.MustParseAddr("192.0.2.1")}},
	}
	head = []byte(plainGet(whole.String()))
	if s.direct(c, head) != answeredDirect {
		t.Fatal("it is not answered directly")
	}
	return s, c, head
}

func TestDirectAnswersAllocateNothing(t *testing.T) {
	if bubble.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	s, c, head := directly(t)
	if n := testing.AllocsPerRun(1000, func() { s.direct(c, head) }); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}

func BenchmarkAccountDirect(b *testing.B) {
	s, c, head := directly(b)
	b.ReportAllocs()
	for b.Loop() {
		s.direct(c, head)
	}
}

// FuzzDirect has both answer whatever may be asked alone.
func FuzzDirect(f *testing.F) {
	for _, fields := range []string{"Host: x\r\n", "Host: x:1:2\r\n", "Host: [::1]\r\n", "host: a.b-c\r\nTrailer: x\r\n", "Host: x\r\nA: \xff\t\r\n", "Host: x\r\nConnection: close\r\n"} {
		f.Add("/api/account/"+whole.String(), fields)
	}
	f.Add("/api/account/"+missing.String()+"?", "Host: x\r\n")
	f.Fuzz(func(t *testing.T, target, fields string) {
		raw := "GET " + target + " HTTP/1.1\r\n" + fields + "\r\n"
		if h, verdict := scanHead([]byte(raw)); verdict != headAccepted || h.bytes != len(raw) || h.body > 0 || h.last {
			return
		}
		if strings.Contains(strings.ToLower(raw), "expect") || strings.Contains(raw, "metrics") {
			return // an answer before the answer, and numbers that differ
		}
		pair := twins(t, func(c *Config) { c.PerMinute = 100 })
		askBoth(t, pair, [2]net.Conn{pair[0].known(), pair[1].known()}, raw)
	})
}
