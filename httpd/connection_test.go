package httpd

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strconv"
	"syscall"
	"testing"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/apikey"
	"ledgerd/httpd/ratelimit"
	"ledgerd/httpd/wire"
)

// last is a request that ends its connection.
const last = "GET /api/blocks/latest HTTP/1.1\r\nHost: ledger\r\nConnection: close\r\n\r\n"

func statuses(replies []reply) (all []int) {
	for _, r := range replies {
		all = append(all, r.status)
	}
	return all
}

// TestEveryConnectionLineCounts spreads the options of a connection over lines (RFC 9110, section
// 5.3).
func TestEveryConnectionLineCounts(t *testing.T) {
	h := serve(t, nil)
	for _, tt := range []struct {
		version string
		lines   []string
		closes  bool
	}{
		{"1.1", []string{"close", "foo"}, true},
		{"1.1", []string{"foo", "close"}, true},
		{"1.1", []string{"keep-alive", "a,\tCLOSE , b", "foo"}, true},
		{"1.1", []string{"foo", "bar"}, false},
		{"1.1", []string{"closed", "not-close, close;x", ""}, false},
		{"1.0", []string{"keep-alive", "foo"}, false},
		{"1.0", []string{"keep-alive", "close"}, true},
		{"1.0", []string{"foo"}, true},
		{"1.0", nil, true},
	} {
		head := "GET /api/health HTTP/" + tt.version + "\r\nHost: x\r\n"
		for _, line := range tt.lines {
			head += "Connection: " + line + "\r\n"
		}
		replies := h.exchange(head, head+"\r\n"+last)
		if want := map[bool]int{true: 1, false: 2}[tt.closes]; len(replies) != want {
			t.Errorf("HTTP/%s with %q: %d answers, want %d", tt.version, tt.lines, len(replies), want)
		} else if replies[0].closes != tt.closes {
			t.Errorf("HTTP/%s with %q: the answer says that it closes: %v", tt.version, tt.lines, replies[0].closes)
		}
	}
}

// TestNobodyIsAskedForABodyInVain expects 100 Continue where the request is refused, or was sent
// by a client of HTTP/1.0. No body follows: the answer does not wait for one.
func TestNobodyIsAskedForABodyInVain(t *testing.T) {
	h := serveTCP(t, nil)
	for name, tt := range requestsOf(t, "expect") {
		ledgertest.Equal(t, statuses(h.exchange(name, tt.raw)), []int{tt.status}, "%s: statuses", name)
	}
}

// G12, F38: TestBareLineFeedsAreRefusedHoweverTheyCome cuts requests into packets. Only those of bodies are
// not counted.
func TestBareLineFeedsAreRefusedHoweverTheyCome(t *testing.T) {
	const bad, post, get = "GET /api/health HTTP/1.1\nHost: x\r\n\r\n", "POST /api/health HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n", "GET /api/health HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n"
	for name, tt := range map[string]struct {
		packets []string
		want    []int
	}{
		"alone":                         {[]string{bad, second}, []int{400}},
		"in a later packet":             {[]string{second, second, bad + second}, []int{200, 200, 400}},
		"behind another":                {[]string{second + bad + second}, []int{400}}, // the one in front shares its fate
		"in front of it the line":       {[]string{bad[:24], bad[24:] + second}, []int{400}},
		"cut behind it":                 {[]string{bad[:25], bad[25:] + second}, []int{400}},
		"CR and LF apart":               {[]string{"GET /api/health HTTP/1.1\r", "\nHost: x\r", "\n\r", "\n", last}, []int{200, 200}},
		"CR and LF apart, then it":      {[]string{second[:len(second)-1], "\n" + bad[:24], bad[24:] + second}, []int{200, 400}},
		"POST with a body of them":      {[]string{post + "a\n\nb\nc" + last}, []int{405, 200}},
		"GET with a body of them":       {[]string{get + "\n\n\n\n\n\n", last}, []int{200, 200}},
		"a body in pieces":              {[]string{post, "\n", "a\n", "\n\r", "\n", last}, []int{405, 200}},
		"a body that ends between both": {[]string{post + "\r\n\r\n\n\r", "\r\n" + last}, []int{405, 200}},
		"behind a body of them":         {[]string{get + "a\n\nb\n\n", bad + second}, []int{200, 400}},
		"with a body of them":           {[]string{"POST /api/health HTTP/1.1\nHost: x\r\nContent-Length: 6\r\n\r\n", "a\nb\nc\n" + second}, []int{400}},
	} {
		h := servePipes(t, nil)
		c := h.dial("")
		go func() {
			for _, packet := range tt.packets {
				_, _ = io.WriteString(c, packet) // the server may have ended the connection
			}
		}()
		ledgertest.Equal(t, statuses(h.replies(name, c)), tt.want, "%s: statuses", name)
	}
}

// TestRefusedConnectionsAreClosedAtOnce goes over a real listener.
func TestRefusedConnectionsAreClosedAtOnce(t *testing.T) {
	h := serveTCP(t, func(c *Config) { c.MaxConnsPerClient = 1 })
	first := h.dial("")
	send(t, first, second)
	ledgertest.Equal(t, readReply(t, bufio.NewReader(first), "GET").status, 200, "the first connection")
	if rest, err := io.ReadAll(h.dial("")); len(rest) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("second connection: %q, %v, want an end", rest, err)
	}
}

// A connection whose key is known counts for that, within its own cap, and makes room for others of its address. One that is too many for its key is told so.
func TestKeysHaveConnectionsOfTheirOwn(t *testing.T) {
	texts, file := map[string]string{}, &apikey.File{Tiers: map[string]apikey.Tier{"gold": {Sockets: 3}, "inside": {Exempt: true}}}
	for tier := range file.Tiers {
		text, hash := apikey.New()
		texts[tier] = text
		file.Keys = append(file.Keys, apikey.Entry{Name: tier, Hash: hash, Tier: tier})
	}
	h := serve(t, func(c *Config) {
		c.Keys, c.MaxConnsPerClient = apikey.NewRing(apikey.Tier{}, now), 2
		c.Keys.Load(file)
	})
	ask := func(n int, field string) (got []int) {
		for range n {
			c := h.dial("192.0.2.1")
			from := bufio.NewReader(c)
			r := reply{}
			for range 2 { // the second may not come
				_, _ = io.WriteString(c, "GET /api/health HTTP/1.1\r\nHost: x\r\n"+field+"\r\n")
				next, err := tryReply(from, "GET")
				if err != nil {
					break
				}
				r = next
			}
			if got = append(got, r.status); r.status == 429 && (!r.closes || r.header.Get("Retry-After") != "1" || r.body != errorBody(429, errConns.Text)) {
				t.Errorf("one too many: %v", r)
			}
		}
		return got
	}
	ledgertest.Equal(t, ask(7, "X-API-Key: "+texts["gold"]+"\r\n"), []int{200, 200, 200, 200, 200, 429, 429}, "connections of a key that may have three sockets")
	ledgertest.Equal(t, ask(7, "X-API-Key: "+texts["inside"]+"\r\n"), []int{200, 200, 200, 200, 200, 200, 200}, "connections of an exempt key")
	ledgertest.Equal(t, ask(3, ""), []int{200, 200, 0}, "connections of their address without a key")
}

// A request that is sent without TLS where TLS is spoken is told so as any request is answered, and counts.
func TestPlainRequestsToTLSAreToldSo(t *testing.T) {
	certified := httptest.NewTLSServer(nil)
	certified.Close()
	h := serveTCP(t, func(c *Config) { c.TLS, c.PerMinute = certified.TLS, 3 })
	for left, method := range []string{"HEAD", "GET"} {
		r := h.ask("", method, "/api/health")
		checkEvery(t, "without TLS", r)
		if want := map[string]string{"GET": errorBody(400, wire.ErrPlain.Text)}[method]; r.status != 400 || !r.closes || r.body != want || r.header.Get("X-RateLimit-Remaining") != strconv.Itoa(2-left) {
			t.Errorf("%s: %v, want 400 and %q", method, r, want)
		}
	}
}

// What is under way when the server stops is answered, and then its connection ends. A handshake is refused, not answered with
// a 101 that says "Connection: close".
func TestShutdownLetsExchangesEnd(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	hold := func() {
		entered <- struct{}{}
		<-leave
	}
	h := serveTCP(t, func(c *Config) {
		c.Upgrade = func(*fasthttp.RequestCtx, ratelimit.Client) { t.Error("upgraded") }
		c.MayUpgrade = func() bool { hold(); return true }
	})
	h.ledger.hold = hold
	asks, upgrades := h.dial(""), h.dial("")
	h.request(asks, "GET", "/api/account/"+whole.String())
	h.request(upgrades, "GET", "/api/ws/accounts", handshake...)
	<-entered
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- h.server.Shutdown(t.Context()) }()
	for { // until nobody is accepted any more
		other, err := h.reach(nil)
		if err != nil {
			break
		}
		_ = other.Close()
	}
	close(leave)
	for c, status := range map[net.Conn]int{asks: 200, upgrades: 503} {
		if got := h.replies("under way", c); len(got) != 1 || got[0].status != status || !got[0].closes {
			t.Errorf("the exchanges under way got %v, want one answer of %d that closes", got, status)
		}
	}
	must(t, <-stopped)
	ledgertest.Equal(t, h.server.Connections(), 0, "connections that are left")
	late, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, h.server.Serve(late))
	if _, err := late.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a listener that comes after Shutdown: Accept = %v, want a closed one", err)
	}
}
