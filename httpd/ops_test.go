package httpd

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/valyala/fasthttp/fasthttputil"

	"ledgerd/engine/ledger"
)

func TestOpsTellsAliveReadyAndNumbers(t *testing.T) {
	unhealthy, panics := "", false
	for _, pprof := range []bool{false, true} {
		s := NewOps(OpsConfig{
			Status: func() ledger.NodeStatus {
				if panics {
					panic("a fault of the test's own")
				}
				return ledger.NodeStatus{Unhealthy: unhealthy}
			},
			WriteMetrics: func(w io.Writer) { _, _ = io.WriteString(w, "ledgerd_up 1\n") },
			Pprof:        pprof,
		})
		ln := fasthttputil.NewInmemoryListener()
		runUntilEnd(t, s.acceptor, ln)
		get := func(raw string) reply {
			t.Helper()
			c, err := ln.Dial()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			if _, err := io.WriteString(c, raw); err != nil {
				t.Fatal(err)
			}
			return readReply(t, bufio.NewReader(c), "GET")
		}
		path := func(path string) reply { t.Helper(); return get("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n") }
		expect := func(r reply, status int, body string) {
			t.Helper()
			if r.status != status || r.body != body || r.header.Get("Server") != "" {
				t.Errorf("%d %s %v, want %d %s", r.status, r.body, r.header, status, body)
			}
		}
		unhealthy, panics = "", false
		expect(path("/livez"), 200, `{"status":"alive"}`)
		expect(path("/readyz"), 200, `{"status":"ready"}`)
		expect(path("/metrics"), 200, "ledgerd_up 1\n")
		expect(path("/nothing"), 404, errorBody(404, "no such path"))
		expect(path("/api/health"), 404, errorBody(404, "no such path"))
		expect(get("GET /livez HTTP/9.9\r\n\r\n"), 400, errorBody(400, string(errMalformed)))
		unhealthy = "the source has stalled for 12s"
		expect(path("/livez"), 200, `{"status":"alive"}`)
		expect(path("/readyz"), 503, errorBody(503, unhealthy))
		panics = true
		expect(path("/readyz"), 500, errorBody(500, "an unexpected error occurred"))
		r := path("/debug/pprof/cmdline")
		if want := map[bool]int{false: 404, true: 200}[pprof]; r.status != want {
			t.Errorf("pprof %v: status %d, want %d", pprof, r.status, want)
		}
		for range 200 { // more than any public client may
			if r := path("/metrics"); r.status != 200 || !strings.HasPrefix(r.header.Get("Content-Type"), "text/plain") {
				t.Fatalf("%d %v", r.status, r.header)
			}
		}
	}
}
