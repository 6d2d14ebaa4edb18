package stream

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// body reads what a refused handshake says.
func refused(t *testing.T, n *node, query string, headers ...string) string {
	t.Helper()
	response, _ := n.handshake(query, headers...)
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := response.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("%q: Content-Type %q, want application/json", query, got)
	}
	return fmt.Sprintf("%d %s", response.StatusCode, body)
}

func badRequest(details string) string {
	return `400 {"error":"Invalid request parameters","details":"` + details + `"}`
}

func TestBadParametersRefuseTheUpgrade(t *testing.T) {
	n := serve(t, nil)
	k := key(1).String()
	notAllowed := func(name string) string { return badRequest(name + " has a value that is not allowed") }
	once := func(name string) string { return badRequest(name + " must be given once and not be empty") }
	pubkeys := badRequest("pubkeys must be a list of base58 public keys")
	programs := badRequest("programs must be a list of base58 public keys")
	tests := map[string]string{
		"pubkeys=":                                  once("pubkeys"),
		"pubkeys=x":                                 pubkeys,
		"pubkeys=" + k + ",":                        pubkeys,
		"pubkeys=," + k:                             pubkeys,
		"pubkeys=" + k + "," + k[:20]:               pubkeys,
		"pubkeys=" + k + "%20":                      pubkeys,
		"pubkeys=0" + k[1:]:                         pubkeys,
		"pubkeys=%ff%fe":                            pubkeys,
		"pubkeys=" + k + "&pubkeys=" + k:            once("pubkeys"),
		"programs=%5B%22" + k + "%22%5D":            programs,
		"programs=" + k + "&programs=" + k:          once("programs"),
		"mode=all":                                  notAllowed("mode"),
		"mode=none&mode=none":                       once("mode"),
		"extended=1":                                notAllowed("extended"),
		"extended=true&extended=false":              once("extended"),
		"commitment=rooted":                         notAllowed("commitment"),
		"wallets=":                                  once("wallets"),
		"wallets=" + k[:20]:                         badRequest("wallets must be a list of base58 public keys"),
		"tokens=1":                                  notAllowed("tokens"),
		"tokens=true&tokens=true":                   once("tokens"),
		"commitment=processed&commitment=processed": once("commitment"),
		"resume_from=-1":                            notAllowed("resume_from"),
		"resume_from=%2b1":                          notAllowed("resume_from"),
		"resume_from=01":                            notAllowed("resume_from"),
		"resume_from=18446744073709551616":          notAllowed("resume_from"),
		"resume_from=1&resume_from=1":               once("resume_from"),
		"overflow=drop":                             notAllowed("overflow"),
		"overflow=disconnect&overflow=disconnect":   once("overflow"),
	}
	for query, want := range tests {
		got := refused(t, n, "?"+query)
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", query, got, want)
		}
	}
	n.awaitEmpty()
	n.wantMetric(`ledgerd_ws_refused_total{reason="request"} %d`, len(tests))
}

func TestGoodParameters(t *testing.T) {
	n := serve(t, nil)
	a, b := account(1, 10, programA), account(2, 20, programB)
	n.script.block(1)
	ka, kb := key(1).String(), key(2).String()
	both := []string{basicFrame(a, 2), basicFrame(b, 2)}
	tests := []struct {
		query string
		hears []string
	}{
		{"", both},
		{"?", both},
		{"?unknown=1&also", both},
		{"?Mode=none", both},
		{"?extended=false", both},
		{"?overflow=disconnect", both},
		{"?overflow=conflate", both},
		{"?commitment=processed", both},
		{"?commitment=confirmed", nil},
		{"?mode=none", nil},
		{"?mode=none&pubkeys=" + ka, both[:1]},
		{"?pubkeys=" + kb, both[1:]},
		{"?pubkeys=" + ka + "," + kb, both},
		{"?pubkeys=" + ka + "%2C" + kb + "," + ka, both},
		{"?pub%6beys=" + ka, both[:1]},
		{"?programs=" + programB.String(), both[1:]},
		{"?programs=" + programB.String() + "&pubkeys=" + ka, both},
		{"?programs=" + programA.String() + "&pubkeys=" + ka, both[:1]},
		{"?extended=true&pubkeys=" + ka, []string{extendedFrame(a, 2, 1, "processed"), slotEnd(2, 2)}},
		{"?extended=true&mode=none", []string{slotEnd(2, 2)}},
		{"?extended=true", []string{extendedFrame(a, 2, 1, "processed"), extendedFrame(b, 2, 2, "processed"), slotEnd(2, 2)}},
	}
	clients := make([]*client, len(tests))
	for i, tt := range tests {
		clients[i] = n.dial(tt.query)
	}
	n.script.block(2, a, b)
	for i, tt := range tests {
		if got := clients[i].settle(); fmt.Sprint(got) != fmt.Sprint(tt.hears) {
			t.Errorf("%s: told %q, want %q", tt.query, got, tt.hears)
		}
		clients[i].send(`{"type":"unsubscribe","all":true}`)
		clients[i].expect(unsubscribed("null", 0, 0))
	}
}

func TestInvalidHandshakesAreRefused(t *testing.T) {
	n := serve(t, nil)
	want := badRequest("not a valid WebSocket handshake")
	tests := map[string][]string{ // the first line tells the harness to add none of its own
		"a plain request": {"Upgrade: no"},
		"no Upgrade":      {"Upgrade: no", "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: " + nonce},
		"another version": {"Upgrade: no", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 8", "Sec-WebSocket-Key: " + nonce},
		"no key":          {"Upgrade: no", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"},
	}
	for name, headers := range tests {
		if got := refused(t, n, "", headers...); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
	n.awaitEmpty()
	n.wantMetric(`ledgerd_ws_refused_total{reason="request"} %d`, len(tests))
}

func TestOriginsAreAllowedByList(t *testing.T) {
	good, also, bad := "https://app.example", "https://a.example", "https://evil.example"
	tests := []struct {
		allowed, origins []string
		ok               bool
	}{
		{nil, []string{bad}, true},
		{nil, nil, true},
		{[]string{good}, nil, true},
		{[]string{good}, []string{bad}, false},
		{[]string{good}, []string{"https://APP.example"}, false},
		{[]string{good}, []string{good + ":8443"}, false},
		{[]string{good}, []string{"null"}, false},
		{[]string{also, good}, []string{good}, true},
		{[]string{"*"}, []string{bad}, true},
		// Each field has to be allowed.
		{[]string{also, good}, []string{good, also}, true},
		{[]string{also, good}, []string{good, bad}, false},
		{[]string{also, good}, []string{bad, good}, false},
		{[]string{also, good}, []string{good, ""}, false},
	}
	for _, tt := range tests {
		n := serve(t, func(c *Config) { c.Origins = tt.allowed })
		var headers []string
		for _, origin := range tt.origins {
			headers = append(headers, "Origin: "+origin)
		}
		if tt.ok {
			n.dial("", headers...)
		} else if got, want := refused(t, n, "", headers...), badRequest("this Origin is not allowed"); got != want {
			t.Errorf("allowed %q, origins %q:\n got %s\nwant %s", tt.allowed, tt.origins, got, want)
		} else {
			n.wantMetric(`ledgerd_ws_refused_total{reason="origin"} 1`)
		}
	}
}

func TestCapsRefuseBeforeTheUpgrade(t *testing.T) {
	full := `503 {"error":"Service unavailable","details":"the server holds as many WebSocket connections as it may"}`
	clientFull := `429 {"error":"Rate limit exceeded","details":"this client holds as many WebSocket connections as it may"}`
	tests := map[string]struct {
		total, perClient int
		want, reason     string
	}{
		"the server is full":       {2, 5, full, "full"},
		"the client has its share": {5, 2, clientFull, "client"},
		"both":                     {2, 2, full, "full"},
	}
	for name, tt := range tests {
		n := serve(t, func(c *Config) { c.MaxConns, c.MaxConnsPerClient = tt.total, tt.perClient })
		first, _ := n.dial(""), n.dial("")
		if got := refused(t, n, ""); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, tt.want)
		}
		if response, _ := n.handshake(""); response.Header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", name)
		}
		n.wantMetric("ledgerd_ws_refused_total{reason=%q} 2", tt.reason)
		n.exempt = true // above the caps
		n.dial("")
		n.exempt = false
		first.close("\x03\xe8")
		first.endsWith(1000, "")
		eventually(t, name+": the place is free again", func() bool {
			response, _ := n.handshake("")
			return response.StatusCode == 101
		})
	}
}

func TestTooManyNamesOnConnectAreRefused(t *testing.T) {
	for _, tt := range []struct {
		pubkeys, programs int
		want              error
	}{{10_000, 0, nil}, {10_001, 0, errManyNames}, {0, 10_001, errManyNames}, {5_000, 5_000, nil}, {5_000, 5_001, errManyNames}} {
		query := url.Values{}
		for name, count := range map[string]int{"pubkeys": tt.pubkeys, "programs": tt.programs} {
			list := make([]string, count)
			for i := range list {
				list[i] = key(i).String()
			}
			if count > 0 {
				query.Set(name, strings.Join(list, ","))
			}
		}
		args := new(fasthttp.Args)
		args.Parse(query.Encode())
		if _, err := parseQuery(args); err != tt.want {
			t.Errorf("%d pubkeys, %d programs: err = %v, want %v", tt.pubkeys, tt.programs, err, tt.want)
		}
	}
}

// hooked is a connection whose first write something comes before. It tells when it ends, as those of a node do.
type hooked struct {
	net.Conn
	before func() error
	lost   func()
}

func (h *hooked) IfLost(f func()) { h.lost = f }

func (h *hooked) Write(p []byte) (int, error) {
	if err := h.before(); err != nil {
		return 0, err
	}
	h.before = func() error { return nil }
	return h.Conn.Write(p)
}

// A seat for which the handshake's answer could not be written is free again at once: a client whose
// handshakes break off is not kept out by them.
func TestALostHandshakeHoldsNoSeat(t *testing.T) {
	h := New(Config{Ledger: newFakeLedger(), MaxConnsPerClient: 1})
	server := &fasthttp.Server{Logger: discard{}, Handler: func(ctx *fasthttp.RequestCtx) {
		h.Upgrade(ctx, netip.AddrFrom4([4]byte{127, 0, 0, 1}), false)
	}}
	for range 3 {
		near, far := net.Pipe()
		go func() { _, _ = far.Write(requestOf("")) }()
		broken := &hooked{Conn: near, before: func() error { return errors.New("a broken socket") }}
		if server.ServeConn(broken) == nil {
			t.Fatal("the handshake was answered")
		}
		broken.lost()
		if h.seats.taken != 0 || len(h.levels[0].all) != 0 {
			t.Fatalf("%d seats are taken and %d subscribers left, want none", h.seats.taken, len(h.levels[0].all))
		}
	}
}

// What is published before the client can have read the 101 is told, whatever it follows.
func TestAPositionIsFixedBeforeTheAnswer(t *testing.T) {
	for _, query := range []string{"", "?pubkeys=" + key(1).String(), "?programs=" + programA.String()} {
		n := serve(t, nil)
		near, far := net.Pipe()
		server := &fasthttp.Server{KeepHijackedConns: true, Handler: func(ctx *fasthttp.RequestCtx) { n.hub.Upgrade(ctx, n.client, false) }}
		publish := func() error {
			n.script.block(1, account(1, 1, programA))
			return nil
		}
		go func() { _ = server.ServeConn(&hooked{Conn: near, before: publish}) }()
		n.connect = func() (net.Conn, error) { return far, far.SetDeadline(time.Now().Add(patience)) }
		c := n.dial(query)
		c.expect(basicFrame(account(1, 1, programA), 1))
	}
}

func TestImpossibleOriginsAreFound(t *testing.T) {
	for _, good := range [][]string{nil, {"*"}, {"https://app.example"}, {"http://localhost:3000", "https://[::1]:8443", "app://bundle"}} {
		if err := CheckOrigins(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", " ", "null", "app.example", "https://", "//app.example", "https://app.example/", "https://app.example/path", "https://app.example?q",
		"https://*.example", "https://App.example", "HTTPS://app.example", "https://user@app.example", "https://app.example:", "https://app.example:x", "https://a b",
	} {
		if err := CheckOrigins([]string{"https://app.example", bad}); err == nil {
			t.Errorf("%q is taken for an origin", bad)
		}
	}
	if CheckOrigins([]string{"https://app.example", "*"}) == nil {
		t.Error("* is taken beside others")
	}
}
