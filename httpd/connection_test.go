package httpd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ledgerd/engine/ledger"
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
		if replies := h.exchange(name, tt.raw); !slices.Equal(statuses(replies), []int{tt.status}) {
			t.Errorf("%s: %v, want %d alone", name, replies, tt.status)
		}
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
		if got := statuses(h.replies(name, c)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: statuses %v, want %v", name, got, tt.want)
		}
	}
}

// TestTenRefusalsEndAConnection sends requests behind one another where the limit is used up.
func TestTenRefusalsEndAConnection(t *testing.T) {
	at := now
	h := serve(t, func(c *Config) {
		c.PerMinute, c.Identity = 2, &ratelimit.Identity{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
		c.Now = func() time.Time { return at }
	})
	ask := func(c net.Conn, from *bufio.Reader, want int, ends bool) {
		t.Helper()
		send(t, c, second)
		r := readReply(t, from, "GET")
		checkEvery(t, "refused", r)
		if r.status != want || r.closes != ends {
			t.Errorf("status %d, closes: %v, want %d and %v", r.status, r.closes, want, ends)
		}
	}
	c := h.dial("192.0.2.1")
	from := bufio.NewReader(c)
	for range 2 { // the second time the minute is over in between
		ask(c, from, 200, false)
		ask(c, from, 200, false)
		for range 9 {
			ask(c, from, 429, false)
		}
		at = at.Add(time.Minute)
	}
	ask(c, from, 200, false)
	ask(c, from, 200, false)
	for i := range 10 {
		ask(c, from, 429, i == 9)
	}
	if rest, err := io.ReadAll(from); len(rest) > 0 || err != nil {
		t.Errorf("behind the last answer: %q, %v", rest, err)
	}
	proxy := h.dial("10.0.0.1")
	from = bufio.NewReader(proxy)
	for i := range 30 {
		ask(proxy, from, map[bool]int{true: 200, false: 429}[i < 2], false)
	}
}

// F35: TestSilentConnectionsDelayNobody has every client take all of its connections and send nothing,
// or half a head, and another one come.
func TestSilentConnectionsDelayNobody(t *testing.T) {
	h := serve(t, func(c *Config) { c.MaxConns = 4000 })
	for i := range 3000 {
		c := h.dial(fmt.Sprintf("192.0.2.%d", i%30))
		if i%3 == 0 {
			send(t, c, "GET /api/he")
		}
	}
	if r := h.doFrom("198.51.100.1", "GET", "/api/health"); r.status != 200 {
		t.Errorf("the newcomer got %d", r.status)
	}
	if got := h.server.Connections(); got < 3000 {
		t.Errorf("only %d connections are open", got)
	}
}

// TestRefusedConnectionsAreClosedAtOnce goes over a real listener.
func TestRefusedConnectionsAreClosedAtOnce(t *testing.T) {
	h := serveTCP(t, func(c *Config) { c.MaxConnsPerClient = 1 })
	first := h.dial("")
	send(t, first, second)
	if r := readReply(t, bufio.NewReader(first), "GET"); r.status != 200 {
		t.Fatalf("status %d", r.status)
	}
	if rest, err := io.ReadAll(h.dial("")); len(rest) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("second connection: %q, %v, want an end", rest, err)
	}
}

func TestShutdownLetsExchangesEnd(t *testing.T) {
	slow := &slowLedger{fakeLedger: newFakeLedger(), entered: make(chan struct{}), leave: make(chan struct{})}
	h := serveTCP(t, func(c *Config) { c.Ledger = slow })
	c := h.dial("")
	send(t, c, "GET /api/account/"+whole.String()+" HTTP/1.1\r\nHost: x\r\n\r\n")
	<-slow.entered
	stopped := make(chan error, 1)
	go func() { stopped <- h.server.Shutdown(context.Background()) }()
	for { // until nobody is accepted any more
		other, err := h.reach(nil)
		if err != nil {
			break
		}
		_ = other.Close()
	}
	close(slow.leave)
	all, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 200 ") || !strings.Contains(string(all), "Connection: close") {
		t.Errorf("the exchange under way got %q, %v", all, err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Shutdown = %v", err)
	}
	if h.server.Connections() != 0 {
		t.Errorf("%d connections are left", h.server.Connections())
	}
	if err := h.server.Serve(nil); !errors.Is(err, wire.ErrServedTwice) {
		t.Errorf("Serve again = %v, want ErrServedTwice", err)
	}
}

// slowLedger holds a question until it may leave.
type slowLedger struct {
	*fakeLedger
	entered, leave chan struct{}
}

func (l *slowLedger) Account(q ledger.Query, key ledger.Pubkey) (ledger.Account, ledger.View, error) {
	close(l.entered)
	<-l.leave
	return l.fakeLedger.Account(q, key)
}
