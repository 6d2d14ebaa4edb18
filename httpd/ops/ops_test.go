package ops

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp/fasthttputil"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/encode"
	"ledgerd/httpd/wire"
)

// serve answers what a listener accepts until the test is over, and returns a client that dials so.
func serve(t *testing.T, ln net.Listener, dial func() (net.Conn, error), config Config) *http.Client {
	t.Helper()
	s, served := New(config), make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		ledgertest.Must(t, s.Shutdown(context.Background()))
		ledgertest.Must(t, <-served)
	})
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return dial() },
	}}
}

func TestOpsTellsAliveReadyAndNumbers(t *testing.T) {
	for _, pprof := range []bool{false, true} {
		unhealthy, degraded, panics := "", "", false
		ln := fasthttputil.NewInmemoryListener()
		client := serve(t, ln, ln.Dial, Config{
			Status: func() ledger.NodeStatus {
				if panics {
					panic("a fault of the test's own")
				}
				return ledger.NodeStatus{Unhealthy: unhealthy, Degraded: degraded}
			},
			WriteMetrics: func(w io.Writer) { _, _ = io.WriteString(w, "ledgerd_up 1\n") },
			Pprof:        pprof,
		})
		expect := func(path string, status int, body string) {
			t.Helper()
			r, err := client.Get("http://ops" + path)
			ledgertest.Must(t, err)
			got, err := io.ReadAll(r.Body)
			if err != nil || r.StatusCode != status || body != "" && string(got) != body || r.Header.Get("Server") != "" || r.Header.Get("Cache-Control") != "no-cache" {
				t.Errorf("%s: %d %s %v %v, want %d %s", path, r.StatusCode, got, r.Header, err, status, body)
			}
			if want := map[bool]string{true: "text/plain; version=0.0.4; charset=utf-8", false: "application/json"}[path == "/metrics"]; body != "" && r.Header.Get("Content-Type") != want {
				t.Errorf("%s: Content-Type %q, want %q", path, r.Header.Get("Content-Type"), want)
			}
			_ = r.Body.Close()
		}
		errorBody := func(status int, details string) string { return string(encode.AppendError(nil, status, details)) }
		expect("/livez", 200, `{"status":"alive"}`)
		expect("/readyz", 200, `{"status":"ready"}`)
		expect("/nothing", 404, errorBody(404, "no such path"))
		expect("/api/health", 404, errorBody(404, "no such path"))
		degraded = `"a" is damaged`
		expect("/readyz", 200, `{"status":"ready","details":"\"a\" is damaged"}`)
		unhealthy = "the source has stalled for 12s"
		expect("/livez", 200, `{"status":"alive"}`)
		expect("/readyz", 503, errorBody(503, unhealthy))
		panics = true
		expect("/readyz", 500, errorBody(500, "an unexpected error occurred"))
		const counted = "# HELP ledgerd_ops_panics_total Panics recovered in handlers of the operators' listener.\n# TYPE ledgerd_ops_panics_total counter\nledgerd_ops_panics_total 1\n"
		for _, page := range []string{"/debug/pprof/", "/debug/pprof/goroutine", "/debug/pprof/symbol"} {
			expect(page, map[bool]int{false: 404, true: 200}[pprof], "")
		}
		expect("/debug/pprof/nothing", 404, "")
		for _, cmdline := range []string{"cmdline", "%63mdline", "/cmdline", "./cmdline", "x/../cmdline"} {
			expect("/debug/pprof/"+cmdline, 404, errorBody(404, "the command line may hold secrets, and is not shown"))
		}
		for _, method := range []string{"POST", "PUT", "DELETE", "TRACE", "OPTIONS"} {
			r, err := http.NewRequestWithContext(t.Context(), method, "http://ops/livez", http.NoBody)
			ledgertest.Must(t, err)
			answer, err := client.Do(r)
			ledgertest.Must(t, err)
			_ = answer.Body.Close()
			if answer.StatusCode != 405 || answer.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s: %d, Allow %q", method, answer.StatusCode, answer.Header.Get("Allow"))
			}
		}
		for range 200 { // more than any public client may
			expect("/metrics", 200, "ledgerd_up 1\n"+counted)
		}
		c, err := ln.Dial()
		ledgertest.Must(t, err)
		_, err = fmt.Fprint(c, "GET /livez HTTP/9.9\r\n\r\n")
		ledgertest.Must(t, err)
		if all, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 400 ") || !strings.HasSuffix(string(all), errorBody(400, wire.ErrMalformed.Error())) {
			t.Errorf("an unknown version: %q, %v", all, err)
		}
	}
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
