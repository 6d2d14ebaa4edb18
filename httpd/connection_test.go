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
	"ledgerd/httpd/ratelimit"
	"ledgerd/httpd/wire"
)

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
		c.Upgrade = func(*fasthttp.RequestCtx, ratelimit.Client) error { return errors.New("upgraded") }
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
