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
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"

	"ledgerd/engine/ledger/ledgertest"
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
	m.body = ledgertest.Repeated(t, m.body)
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
		if name, other := strings.CutPrefix(what, call.Method+": "); other {
			m = manners()[name]
			wait = m.does
		}
		if m.does == "stalls" || what == "stalls on "+call.Method {
			_, _ = io.Copy(io.Discard, from)
		}
		d, _ := time.ParseDuration(wait)
		time.Sleep(d)
		body := strings.NewReplacer("$ID", string(call.ID), "$CALL", string(sent), `\n`, "\n", `\\`, `\`, `\xff`, "\xff").Replace(m.body)
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

// Checking an answer makes no tree of it, and none of its bytes anew.
func TestLongAnswersTakeTheirMemoryAlone(t *testing.T) {
	const size = 1 << 20
	body := []byte(`{"jsonrpc":"2.0","result":[` + strings.Repeat(`{"a":1},`, size/8) + `1],"id":123}` + strings.Repeat(" ", 100))
	d, err := New(Config{Ledger: newFakeLedger()})
	must(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	answer, err := d.check(&forwarded{id: "123", end: []byte(`,"id":7}`)}, body)
	runtime.ReadMemStats(&after)
	must(t, err)
	if took := after.TotalAlloc - before.TotalAlloc; took > size/2 {
		t.Errorf("checking %d bytes took %d", size, took)
	}
	if !bytes.HasSuffix(answer, []byte(`1],"id":7}`)) || !json.Valid(answer) {
		t.Errorf("the answer is %.60s…", answer)
	}
}

// F47: what a body is parsed to, some hundred times its bytes, is let go of before others are asked, who may take their time.
func TestCallsOfOthersHoldNoTree(t *testing.T) {
	const calls = 4
	come, gone, leave := make(chan bool), make(chan bool, calls), make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		come <- true
		<-leave
	}))
	defer upstream.Close()
	r := serve(t, &settings{fakeLedger: newFakeLedger(), door: Config{Forward: []string{upstream.URL}}})
	before := ledgertest.HeapBytes()
	for range calls {
		go func() {
			defer func() { gone <- true }() // also after an answer that is none
			r.call("m", "["+strings.Repeat("0,", 32_000)+"0]")
		}()
		select {
		case <-come:
		case <-gone:
			t.Error("a call was not passed on")
			gone <- true
		}
	}
	if held := int64(ledgertest.HeapBytes()-before) / calls; held > 1<<20 {
		t.Errorf("a call of 64 KB holds %d bytes while another node is asked", held)
	}
	close(leave)
	for range calls {
		<-gone
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
	r := serve(t, &settings{fakeLedger: newFakeLedger(), door: Config{Forward: []string{url}, Log: slog.New(slog.NewTextHandler(&log, nil))}})
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
