package ops

import (
	"context"
	"net"
	"net/http"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// run answers what a listener accepts until the test is over.
func run(t *testing.T, s *Server, ln net.Listener) {
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		ledgertest.Must(t, s.Shutdown(context.Background()))
		ledgertest.Must(t, <-served)
	})
}

// serve runs a server, and returns a client that dials so.
func serve(t *testing.T, ln net.Listener, dial func() (net.Conn, error), config Config) *http.Client {
	t.Helper()
	run(t, New(config), ln)
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return dial() },
	}}
}

// F35: silent connections do not keep an operator out, also where they come from the same machine.
func TestSilentConnectionsMakeRoomForAnOperator(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ledgertest.Must(t, err)
	dial := func() (net.Conn, error) { return net.Dial("tcp", ln.Addr().String()) }
	client := serve(t, ln, dial, Config{Status: func() ledger.NodeStatus { return ledger.NodeStatus{} }})
	for range maxConns {
		c, err := dial()
		ledgertest.Must(t, err)
		defer c.Close()
	}
	answer, err := client.Get("http://" + ln.Addr().String() + "/livez")
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v, want 200", answer, err)
	}
	_ = answer.Body.Close()
}
