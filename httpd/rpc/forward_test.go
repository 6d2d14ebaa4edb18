package rpc

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd"
	"ledgerd/httpd/budget"
)

// A fakeUpstream does to each call what its manner says.
type fakeUpstream struct {
	*fasthttputil.InmemoryListener
	manner
	asked, at, top atomic.Int64 // calls; those under way, and the most at a time
	conns          sync.WaitGroup
}

// manner is a line of testdata/manners.
type manner struct{ name, does, status, headers, body string }

var manners = sync.OnceValue(func() map[string]manner {
	text, _ := os.ReadFile("testdata/manners") // a manner that is not there is found where it is asked for
	all := make(map[string]manner)
	for line := range strings.Lines(string(text)) {
		if m := append(strings.SplitN(strings.TrimRight(line, "\n"), "|", 5), "", "", "", ""); m[0] != "" && m[0][0] != '#' {
			name := strings.TrimSpace(m[0])
			all[name] = manner{name, strings.TrimSpace(m[1]), strings.TrimSpace(m[2]), strings.TrimSpace(m[3]), strings.TrimPrefix(m[4], " ")}
		}
	}
	return all
})

func mannerOf(t testing.TB, name string) manner {
	m, ok := manners()[name]
	if !ok {
		t.Fatalf("there is no manner %q", name)
	}
	return m
}

func newFakeUpstream(m manner) *fakeUpstream {
	u := &fakeUpstream{InmemoryListener: fasthttputil.NewInmemoryListener(), manner: m}
	u.conns.Go(func() {
		for {
			c, err := u.Accept()
			if err != nil {
				return
			}
			u.conns.Go(func() { defer c.Close(); u.serve(c) })
		}
	})
	return u
}

func (u *fakeUpstream) serve(c net.Conn) {
	for from := bufio.NewReader(c); ; {
		request, err := http.ReadRequest(from)
		if err != nil {
			return
		}
		var call struct {
			ID     json.RawMessage
			Method string
		}
		sent, err := io.ReadAll(request.Body)
		if err != nil || json.Unmarshal(sent, &call) != nil || request.Header.Get("Content-Type") != "application/json" {
			return
		}
		u.asked.Add(1)
		u.top.Store(max(u.top.Load(), u.at.Add(1)))
		m := u.manner
		wait, what, _ := strings.Cut(m.does, ", ")
		if m.does == "stalls" || what == "stalls on "+call.Method {
			_, _ = io.Copy(io.Discard, from)
		}
		d, _ := time.ParseDuration(wait)
		time.Sleep(d)
		body := strings.NewReplacer("$ID", string(call.ID), "$CALL", string(sent), `\n`, "\n", `\\`, `\`).Replace(m.body)
		headers := cmp.Or(m.headers, "X-None: 1")
		if !strings.Contains(headers, "Content-Length") {
			headers += fmt.Sprintf("\r\nContent-Length: %d", len(body))
		}
		if u.at.Add(-1); m.status == "" {
			return
		}
		if _, err := fmt.Fprintf(c, "HTTP/1.1 %s\r\n%s\r\n\r\n%s", m.status, headers, body); err != nil || m.does == "then closes" {
			return
		}
	}
}

// meet has the upstreams of a door, in a bubble, have some manners.
func (d *Door) meet(t *testing.T, names ...string) (upstreams []*fakeUpstream) {
	for i, name := range names {
		u := newFakeUpstream(mannerOf(t, name))
		upstreams = append(upstreams, u)
		client := d.upstreams[i].client
		client.DialTimeout = func(string, time.Duration) (net.Conn, error) {
			if u.does == "is away" {
				return nil, errors.New("connection refused")
			}
			return u.Dial()
		}
		t.Cleanup(func() {
			client.CloseIdleConnections()
			must(t, u.Close())
			u.conns.Wait()
		})
	}
	return upstreams
}

// share is the memory that a client may take.
type share struct{ left int }

func (s *share) Reserve(bytes int) error {
	if bytes > s.left {
		return ledger.ErrUnavailable
	}
	s.left -= bytes
	return nil
}

// asks returns a call for upstreams.
func (o *outside) asks(id string) *forwarded {
	return &forwarded{outside: o, request: []byte(`{"jsonrpc":"2.0","id":123,"method":"m"}`), id: "123", end: []byte(`,"id":` + id + `}`),
		failure: &callError{code: codeMethod, message: "why"}}
}

// TestLongAnswersTakeTheirMemoryAlone: checking an answer makes no tree of it, and all answers of an exchange are taken from the memory of its client.
func TestLongAnswersTakeTheirMemoryAlone(t *testing.T) {
	const size = 1 << 20
	long := []byte(`{"jsonrpc":"2.0","result":[` + strings.Repeat(`{"a":1},`, size/8) + `1],"id":123}` + strings.Repeat(" ", 100))
	d, err := New(Config{Ledger: newFakeLedger()})
	must(t, err)
	var before, after runtime.MemStats
	f := newOutside(d, nil).asks("7")
	body := bytes.Clone(long)
	runtime.ReadMemStats(&before)
	answer, err := f.check(body)
	runtime.ReadMemStats(&after)
	must(t, err)
	if took := after.TotalAlloc - before.TotalAlloc; took > size/2 {
		t.Errorf("checking %d bytes took %d", len(long), took)
	}
	if !bytes.HasSuffix(answer, []byte(`1],"id":7}`)) || !json.Valid(answer) {
		t.Errorf("the answer is %.60s…", answer)
	}
	for _, tt := range []struct {
		isBatch bool
		kept    int
	}{{false, 7}, {true, 3}} {
		o := newOutside(d, &share{left: 7*len(long) + 7*1024})
		kept := 0
		for range 10 {
			f := o.asks("7")
			f.isBatch = tt.isBatch
			if f.keep(slices.Clip(bytes.Clone(long))); f.passed {
				kept++
			} else if !bytes.Contains(f.answer, []byte(`"code":-32603`)) {
				t.Errorf("beyond the share: %s", f.answer)
			}
		}
		if kept != tt.kept {
			t.Errorf("in a batch: %v: %d answers are kept, want %d", tt.isBatch, kept, tt.kept)
		}
	}
}

// TestUpstreamsGetTheSecretsOfTheirURLs, which nobody else sees.
func TestUpstreamsGetTheSecretsOfTheirURLs(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		var call struct{ ID json.RawMessage }
		_ = json.NewDecoder(r.Body).Decode(&call)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","result":"%s %s %s","id":%s}`, r.URL, user, password, call.ID)
	}))
	defer upstream.Close()
	var log bytes.Buffer
	url := strings.Replace(upstream.URL, "http://", "http://who:secret@", 1) + "/v2/secret?api-key=secret"
	r := serve(t, newFakeLedger(), func(c *Config, _ *httpd.Config) {
		c.Forward, c.Log = []string{url}, slog.New(slog.NewTextHandler(&log, nil))
	})
	ledgertest.Equal(t, r.call("getTransaction", `["x"]`), `"result":"/v2/secret?api-key=secret who secret"`, "what the upstream got")
	upstream.Close()
	if got := r.call("getTransaction", "[]"); !strings.Contains(got, "-32603") {
		t.Errorf("without the upstream: %s", got)
	}
	var scrape bytes.Buffer
	r.door.writeMetrics(&scrape)
	if !strings.Contains(log.String(), "127.0.0.1") || strings.Contains(log.String()+scrape.String(), "secret") {
		t.Errorf("the log has no host, or secrets: %s", log.String())
	}
	for _, line := range []string{`ledgerd_rpc_forwarded_total{method="other"} 2`, `ledgerd_rpc_forward_lost_total 1`, `ledgerd_rpc_upstream_failures_total{upstream="1"} 1`} {
		if !strings.Contains(scrape.String(), line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
	for _, bad := range []string{"ws://secret", "secret", "http://", "http://a b/secret"} {
		if _, err := New(Config{Forward: []string{"http://good", bad}}); err == nil || !strings.HasPrefix(err.Error(), "upstream node 2 ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestABatchStaysWithinTheShareOfItsClient: of long answers those are passed on that there is memory for, while local calls take of it too.
func TestABatchStaysWithinTheShareOfItsClient(t *testing.T) {
	const share, answerBytes, calls = 1 << 20, 200 << 10, 20
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call struct{ ID json.RawMessage }
		_ = json.NewDecoder(r.Body).Decode(&call)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","result":"%s","id":%s}`, strings.Repeat("x", answerBytes), call.ID)
	}))
	defer upstream.Close()
	whole := budget.New(8 * share)
	r := serve(t, newFakeLedger(), func(c *Config, public *httpd.Config) {
		c.Forward, public.Memory = []string{upstream.URL}, whole
	})
	batch := `{"jsonrpc":"2.0","id":"l","method":"getBlocks","params":[10,12]}`
	for i := range calls {
		batch += fmt.Sprintf(`,{"jsonrpc":"2.0","id":%d,"method":"m"},{"jsonrpc":"2.0","id":"l","method":"getBlocks","params":[10,12]}`, i)
	}
	body := r.post("[" + batch + "]")
	passed, refused := strings.Count(body, `"result":"xxx`), strings.Count(body, `"code":-32603`)
	if passed < 1 || passed > share/(2*answerBytes) || passed+refused != calls || strings.Count(body, `"result":[10,12]`) != calls+1 || !json.Valid([]byte(body)) {
		t.Errorf("%d answers are passed on, %d refused", passed, refused)
	}
}

// probe is a door that does something with each exchange instead of answering it.
type probe struct {
	*Door
	do func(x *httpd.Exchange)
}

func (p probe) Answer(x *httpd.Exchange) error {
	p.do(x)
	x.Reply(204, nil, ledger.View{})
	return nil
}

// TestLocalCallsLeaveTheMemoryOfForwardedOnes: what a local call gives back is its own.
func TestLocalCallsLeaveTheMemoryOfForwardedOnes(t *testing.T) {
	const kept = 100 << 10
	l, whole := newFakeLedger(), budget.New(1<<20)
	d, err := New(Config{Ledger: l})
	must(t, err)
	server, ln := httpd.New(httpd.Config{Ledger: l, Memory: whole}), fasthttputil.NewInmemoryListener()
	used := int64(-1)
	served := make(chan error, 1)
	go func() {
		served <- server.ServeDoor(ln, probe{d, func(x *httpd.Exchange) {
			s := &session{door: d, x: x, outside: newOutside(d, x)}
			calls, _, err := s.parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"getBlocks","params":[10,12]}`))
			f := s.outside.asks("7")
			f.keep(make([]byte, kept))
			s.call = call{session: s}
			if answer, _ := s.run(nil, calls[0]); err == nil && f.passed && bytes.Contains(answer, []byte("[10,12]")) {
				used = whole.Used()
			}
		}})
	}()
	c, err := ln.Dial()
	must(t, err)
	_, err = io.WriteString(c, "GET /health HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
	must(t, err)
	_, err = io.ReadAll(c)
	must(t, err)
	must(t, server.Shutdown(t.Context()))
	must(t, <-served)
	if used != kept {
		t.Errorf("after a local call %d bytes are taken, want %d", used, kept)
	}
}
