package rpc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/httpd"
)

// A fakeUpstream does to each call what its manner says: the manners of nodes that clients meet, and worse.
type fakeUpstream struct {
	*fasthttputil.InmemoryListener
	manner         string
	asked, at, top atomic.Int64 // calls; those under way, and the most at a time
	conns          sync.WaitGroup
}

// manners are what an upstream writes to a call with an id, from the status line on.
var manners = map[string]func(id json.RawMessage) string{
	"answers": func(id json.RawMessage) string {
		return ok(`"result":{"context":{"slot":50},"value":1},"id":` + string(id))
	},
	"spaces": func(id json.RawMessage) string { return ok("\"result\" : 7 , \"id\":" + string(id) + " \n") },
	"is old": func(id json.RawMessage) string {
		return ok(`"result":{"context":{"slot":5},"value":1},"id":` + string(id))
	},
	"says old": func(id json.RawMessage) string {
		return ok(`"error":{"code":-32016,"message":"m","data":{"contextSlot":4}},"id":` + string(id))
	},
	"errs":         func(id json.RawMessage) string { return ok(`"error":{"code":-32002,"message":"m"},"id":` + string(id)) },
	"is unhealthy": func(id json.RawMessage) string { return ok(`"error":{"code":-32005,"message":"m"},"id":` + string(id)) },
	"lies":         func(json.RawMessage) string { return ok(`"result":1,"id":"another"`) },
	"says both":    func(id json.RawMessage) string { return ok(`"result":1,"error":{"code":1},"id":` + string(id)) },
	"says neither": func(id json.RawMessage) string { return ok(`"id":` + string(id)) },
	"babbles":      func(json.RawMessage) string { return "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{]" },
	"is busy": func(json.RawMessage) string {
		return "HTTP/1.1 429 Too Many\r\nRetry-After: 20\r\nContent-Length: 0\r\n\r\n"
	},
	"fails":      func(json.RawMessage) string { return "HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n" },
	"is endless": func(json.RawMessage) string { return "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{" },
	"closes":     nil, "stalls": nil, "is late": nil, "is slow": nil, "is away": nil,
}

func ok(members string) string {
	body := `{"jsonrpc":"2.0",` + members + `}`
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func newFakeUpstream(manner string) *fakeUpstream {
	u := &fakeUpstream{InmemoryListener: fasthttputil.NewInmemoryListener(), manner: manner}
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
		var call struct{ ID json.RawMessage }
		if json.NewDecoder(request.Body).Decode(&call) != nil {
			return
		}
		u.asked.Add(1)
		u.top.Store(max(u.top.Load(), u.at.Add(1)))
		say := manners[u.manner]
		switch u.manner {
		case "closes":
			return
		case "stalls":
			_, _ = io.Copy(io.Discard, from)
			return
		case "is late":
			time.Sleep(forwardTime + time.Second)
			say = manners["answers"]
		case "is slow":
			time.Sleep(10 * time.Millisecond)
			say = manners["answers"]
		}
		u.at.Add(-1)
		if _, err := io.WriteString(c, say(call.ID)); err != nil {
			return
		}
	}
}

// forwarding returns a door whose upstreams have some manners, and what stops them.
func forwarding(t *testing.T, manners ...string) (d *Door, upstreams []*fakeUpstream, stop func()) {
	t.Helper()
	config := Config{Ledger: newFakeLedger()}
	for range manners {
		config.Forward = append(config.Forward, "http://upstream")
	}
	d, err := New(config)
	must(t, err)
	for i, manner := range manners {
		u := newFakeUpstream(manner)
		upstreams = append(upstreams, u)
		d.upstreams[i].client.DialTimeout = func(string, time.Duration) (net.Conn, error) {
			if u.manner == "is away" {
				return nil, errors.New("connection refused")
			}
			return u.Dial()
		}
	}
	return d, upstreams, func() {
		for i, u := range upstreams {
			d.upstreams[i].client.CloseIdleConnections()
			must(t, u.Close())
			u.conns.Wait()
		}
		time.Sleep(time.Minute) // in which the clients' cleaners of idle connections find none and end
	}
}

// asks returns a call for upstreams.
func (d *Door) asks(id string, least ledger.Slot) *forwarded {
	return &forwarded{door: d, request: []byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"m"}`), id: []byte(`,"id":` + id + `}`), least: least,
		failure: &callError{code: codeMethod, message: "why"}}
}

// TestUpstreamsOfEveryManner: what is passed on is an answer to the call and not older than it allows, the call takes its time at most, and a
// node fails exactly if it gives no answer to the call.
func TestUpstreamsOfEveryManner(t *testing.T) {
	const good, slot = `"value":1},"id":7}`, 40
	for _, tt := range []struct {
		manners []string
		want    string
		fails   []bool
	}{
		{[]string{"answers"}, good, []bool{false}},
		{[]string{"spaces"}, `"result" : 7 , "id":7 ` + "\n" + `}`, []bool{false}},
		{[]string{"errs", "answers"}, `"code":-32002`, []bool{false, false}},
		{[]string{"is old"}, `"code":-32016,"message":"Minimum context slot has not been reached","data":{"contextSlot":5}},"id":7}`, []bool{false}},
		{[]string{"says old", "is away"}, `"data":{"contextSlot":4}},"id":7}`, []bool{false, true}},
		{[]string{"is old", "says old", "answers"}, good, []bool{false, false, false}},
		{[]string{"is unhealthy", "answers"}, good, []bool{true, false}},
		{[]string{"lies", "says both", "says neither", "babbles", "answers"}, good, []bool{true, true, true, true, false}},
		{[]string{"is busy", "fails", "is endless", "closes", "is away", "answers"}, good, []bool{true, true, true, true, true, false}},
		{[]string{"stalls", "answers"}, good, []bool{true, false}},
		{[]string{"is late", "stalls", "answers"}, good, []bool{true, true, false}},
		{[]string{"stalls", "is late"}, `"code":-32603`, []bool{true, true}},
		{[]string{"lies"}, `"code":-32603,"message":"Internal error: no other node answered; of this one: why"},"id":7}`, []bool{true}},
	} {
		t.Run(strings.Join(tt.manners, ", "), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				d, _, stop := forwarding(t, tt.manners...)
				began := time.Now()
				f := d.asks("7", slot)
				f.ask()
				if took := time.Since(began); !strings.HasSuffix(string(f.answer), tt.want) && !strings.Contains(string(f.answer), tt.want) || took > forwardTime {
					t.Errorf("after %v: %s, want %s", took, f.answer, tt.want)
				}
				for i, u := range d.upstreams {
					if failed := u.failures.Load() == 1; failed != tt.fails[i] {
						t.Errorf("upstream %d, which %s: failed is %v", i, tt.manners[i], failed)
					}
				}
				stop()
			})
		})
	}
}

// TestUpstreamsThatFailAreLeftAloneForLonger: for a second, then two, up to half a minute, or as long as the node says; and one good answer ends it.
func TestUpstreamsThatFailAreLeftAloneForLonger(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		d, upstreams, stop := forwarding(t, "fails", "answers")
		ask := func() { d.asks("1", 0).ask() }
		for i, pause := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
			ask()
			time.Sleep(pause*time.Second - time.Millisecond)
			ask()
			if first, second := upstreams[0].asked.Load(), upstreams[1].asked.Load(); first != int64(i+1) || second != int64(2*i+2) {
				t.Fatalf("failure %d: asked %d and %d times", i+1, first, second)
			}
			time.Sleep(time.Millisecond)
		}
		upstreams[0].manner = "answers"
		ask()
		upstreams[0].manner = "is busy"
		ask()
		time.Sleep(19 * time.Second)
		if !d.upstreams[0].isAlone(time.Now()) {
			t.Error("a node that asked for 20 seconds is asked after 19")
		}
		time.Sleep(time.Second)
		if d.upstreams[0].isAlone(time.Now()) {
			t.Error("a node is left alone for longer than it asked for, after a good answer")
		}
		stop()
	})
}

// TestCallsInFlightAreBounded: of a hundred calls at a time sixteen are under way, and all are answered.
func TestCallsInFlightAreBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		d, upstreams, stop := forwarding(t, "is slow")
		var asking sync.WaitGroup
		all := make([]*forwarded, 100)
		for i := range all {
			all[i] = d.asks(fmt.Sprint(i), 0)
			asking.Go(all[i].ask)
		}
		asking.Wait()
		for i, f := range all {
			if !bytes.Contains(f.answer, []byte(`"value":1`)) || !bytes.HasSuffix(f.answer, f.id) {
				t.Errorf("call %d: %s", i, f.answer)
			}
		}
		if top := upstreams[0].top.Load(); top != maxInFlight {
			t.Errorf("%d calls were under way at a time, want %d", top, maxInFlight)
		}
		stop()
	})
}

// TestForwardedCallsTakeTheirPlaces asks for a batch of which an upstream answers some, with the secrets of its URL, which nobody else sees.
func TestForwardedCallsTakeTheirPlaces(t *testing.T) {
	var mu sync.Mutex
	var bodies []string
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		user, password, _ := r.BasicAuth()
		mu.Lock()
		bodies = append(bodies, string(body))
		mu.Unlock()
		var call struct{ ID json.RawMessage }
		_ = json.Unmarshal(body, &call)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","result":"%s %s %s","id":%s}`, r.URL, user, password, call.ID)
	}))
	defer upstream.Close()
	var log bytes.Buffer
	url := strings.Replace(upstream.URL, "http://", "http://who:secret@", 1) + "/v2/secret?api-key=secret"
	r := serve(t, newFakeLedger(), func(c *Config, _ *httpd.Config) {
		c.Forward, c.Log = []string{url}, slog.New(slog.NewTextHandler(&log, nil))
	})
	const answered = `{"jsonrpc":"2.0","result":"/v2/secret?api-key=secret who secret","id":`
	for _, tt := range []struct{ body, want string }{
		{`{"jsonrpc":"2.0","id":"a\u0062","method":"getTransaction","params":["x"]}`, answered + `"a\u0062"}`},
		{`[{"jsonrpc":"2.0","id":1,"method":"m"}, {"jsonrpc":"2.0","id":2,"method":"getSlot"},{"jsonrpc":"2.0","method":"m"},{"jsonrpc":"2.0","id":3,"method":"m"} ]`,
			`[` + answered + `1},{"jsonrpc":"2.0","result":20,"id":2},` + answered + `3}]`},
		{`[{"jsonrpc":"2.0","id":2,"method":"getSlot"},{"jsonrpc":"2.0","id":4,"method":"getBlock","params":[12]},{"id":5}]`,
			`[{"jsonrpc":"2.0","result":20,"id":2},` + answered + `4},{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: jsonrpc must be \"2.0\""},"id":5}]`},
	} {
		response, body := r.do("POST", "/", "application/json", tt.body)
		if body != tt.want || response.Header.Get("X-Ledger-Forwarded") != "1" {
			t.Errorf("%s: got\n%s, want\n%s\n%v", tt.body, body, tt.want, response.Header)
		}
	}
	if response, body := r.do("POST", "/", "application/json", `{"jsonrpc":"2.0","id":1,"method":"getSlot"}`); response.Header.Get("X-Ledger-Forwarded") != "" {
		t.Errorf("%s is said to be of another node", body)
	}
	slices.Sort(bodies)
	if want := `{"jsonrpc":"2.0","id":"a\u0062","method":"getTransaction","params":["x"]}`; len(bodies) != 4 || bodies[0] != want {
		t.Errorf("the upstream was sent %q", bodies)
	}
	upstream.Close()
	if got := r.call("getTransaction", "[]"); !strings.Contains(got, "-32603") {
		t.Errorf("without the upstream: %s", got)
	}
	var scrape bytes.Buffer
	r.door.writeMetrics(&scrape)
	if !strings.Contains(log.String(), "127.0.0.1") || strings.Contains(log.String()+scrape.String(), "secret") {
		t.Errorf("the log has no host, or secrets: %s", log.String())
	}
	for _, line := range []string{`ledgerd_rpc_forwarded_total{method="other"} 4`, `ledgerd_rpc_forward_lost_total 1`, `ledgerd_rpc_upstream_failures_total{upstream="1"} 1`} {
		if !strings.Contains(scrape.String(), line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
	for _, bad := range []string{"ws://secret", "secret", "http://", "http://a b/secret"} {
		if _, err := New(Config{Forward: []string{"http://good", bad}}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
