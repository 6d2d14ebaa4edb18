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
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd"
	"ledgerd/httpd/budget"
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
	"puts it first": func(id json.RawMessage) string {
		body := `{"result":{"id":"},{\"","a\\":[1,{}]},"id":` + string(id) + `}`
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	},
	"finds it malformed":  func(json.RawMessage) string { return ok(`"error":{"code":-32600,"message":"m"},"id":null`) },
	"errs without a code": func(id json.RawMessage) string { return ok(`"error":"m","id":` + string(id)) },
	"refuses":             func(json.RawMessage) string { return "HTTP/1.1 413 Long\r\nContent-Length: 2\r\n\r\nno" },
	"refuses in JSON": func(json.RawMessage) string {
		return strings.Replace(ok(`"error":{"code":-32602}`), "200 OK", "400 Bad", 1)
	},
	"closes after each": func(id json.RawMessage) string { return ok(`"result":1,"id":` + string(id)) },
	"closes":            nil, "stalls": nil, "is late": nil, "is slow": nil, "is away": nil, "repeats": nil,
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
		body, err := io.ReadAll(request.Body)
		if err != nil || json.Unmarshal(body, &call) != nil {
			return
		}
		u.asked.Add(1)
		u.top.Store(max(u.top.Load(), u.at.Add(1)))
		manner := u.manner
		say := manners[manner]
		switch manner {
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
		case "repeats":
			say = func(id json.RawMessage) string { return ok(`"result":` + string(body) + `,"id":` + string(id)) }
		}
		u.at.Add(-1)
		if _, err := io.WriteString(c, say(call.ID)); err != nil || manner == "closes after each" {
			return
		}
	}
}

// meet has the upstreams of a door, in a bubble, have some manners.
func (d *Door) meet(t *testing.T, manners ...string) (upstreams []*fakeUpstream) {
	for i, manner := range manners {
		u := newFakeUpstream(manner)
		upstreams = append(upstreams, u)
		client := d.upstreams[i].client
		client.DialTimeout = func(string, time.Duration) (net.Conn, error) {
			if u.manner == "is away" {
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

// forwarding runs a test, in a bubble, with a door whose upstreams have some manners.
func forwarding(t *testing.T, test func(t *testing.T, d *Door, upstreams []*fakeUpstream), manners ...string) {
	t.Helper()
	bubbletest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Minute) }) // in which the clients' cleaners of idle connections find none and end
		d, err := New(Config{Ledger: newFakeLedger(), Forward: slices.Repeat([]string{"http://upstream"}, len(manners))})
		must(t, err)
		test(t, d, d.meet(t, manners...))
	})
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

// asks returns a call for upstreams, in an exchange of its own.
func (d *Door) asks(id string, least ledger.Slot) *forwarded {
	return newOutside(d, &share{}).asks(id, least)
}

func (o *outside) asks(id string, least ledger.Slot) *forwarded {
	return &forwarded{outside: o, request: []byte(`{"jsonrpc":"2.0","id":123,"method":"m"}`), id: "123", end: []byte(`,"id":` + id + `}`), least: least,
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
		{[]string{"spaces"}, `{"jsonrpc":"2.0","result":7,"id":7}`, []bool{false}},
		{[]string{"puts it first"}, `{"jsonrpc":"2.0","result":{"id":"},{\"","a\\":[1,{}]},"id":7}`, []bool{false}},
		{[]string{"finds it malformed", "answers"}, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"m"},"id":7}`, []bool{false, false}},
		{[]string{"refuses", "answers"}, good, []bool{false, false}},
		{[]string{"refuses", "is away"}, `"code":-32603,"message":"Internal error: another node refuses the call with status 413; of this one: why"},"id":7}`, []bool{false, true}},
		{[]string{"refuses in JSON"}, `{"jsonrpc":"2.0","error":{"code":-32602},"id":7}`, []bool{false}},
		{[]string{"errs without a code", "answers"}, good, []bool{true, false}},
		{[]string{"errs", "answers"}, `"code":-32002`, []bool{false, false}},
		{[]string{"is old"}, `"code":-32016,"message":"Minimum context slot has not been reached","data":{"contextSlot":5}},"id":7}`, []bool{false}},
		{[]string{"says old", "is away"}, `"data":{"contextSlot":4}},"id":7}`, []bool{false, true}},
		{[]string{"is old", "says old", "answers"}, good, []bool{false, false, false}},
		{[]string{"is unhealthy", "answers"}, good, []bool{true, false}},
		{[]string{"lies", "says both", "says neither", "babbles", "answers"}, good, []bool{true, true, true, true, false}},
		{[]string{"is busy", "fails", "is endless", "closes", "is away", "answers"}, good, []bool{true, true, false, true, true, false}},
		{[]string{"stalls", "answers"}, good, []bool{true, false}},
		{[]string{"is late", "stalls", "answers"}, good, []bool{true, true, false}},
		{[]string{"stalls", "is late"}, `"code":-32603`, []bool{true, true}},
		{[]string{"lies"}, `"code":-32603,"message":"Internal error: no other node answered; of this one: why"},"id":7}`, []bool{true}},
	} {
		t.Run(strings.Join(tt.manners, ", "), func(t *testing.T) {
			forwarding(t, func(t *testing.T, d *Door, _ []*fakeUpstream) {
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
			}, tt.manners...)
		})
	}
}

// TestUpstreamsThatFailAreLeftAloneForLonger: for a second, then two, up to half a minute, or as long as the node says; and one good answer ends it.
func TestUpstreamsThatFailAreLeftAloneForLonger(t *testing.T) {
	forwarding(t, func(t *testing.T, d *Door, upstreams []*fakeUpstream) {
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
	}, "fails", "answers")
}

// TestCallsInFlightAreBounded: of many slow calls at a time some are under way, fewer where they are of one exchange, which leaves turns for others. All
// are answered.
func TestCallsInFlightAreBounded(t *testing.T) {
	for _, tt := range []struct {
		calls       int
		oneExchange bool
		most        int64
	}{{100, false, maxInFlight}, {20, true, maxInFlightEach}} {
		forwarding(t, func(t *testing.T, d *Door, upstreams []*fakeUpstream) {
			o := newOutside(d, &share{})
			for i := range tt.calls {
				f := d.asks(fmt.Sprint(i), 0)
				if tt.oneExchange {
					f.outside = o
				}
				o.start(f)
			}
			o.ends.Wait()
			for i, f := range o.calls {
				if !bytes.Contains(f.answer, []byte(`"value":1`)) || !bytes.HasSuffix(f.answer, f.end) {
					t.Errorf("call %d: %s", i, f.answer)
				}
			}
			if top := upstreams[0].top.Load(); top != tt.most {
				t.Errorf("%d of %d calls were under way at a time, want %d", top, tt.calls, tt.most)
			}
		}, "is slow")
	}
}

// TestFailuresOfOneTimeCountOnce: calls that fail together are one failure, and a call that is too slow is none while others are answered.
func TestFailuresOfOneTimeCountOnce(t *testing.T) {
	forwarding(t, func(t *testing.T, d *Door, upstreams []*fakeUpstream) {
		u := d.upstreams[0]
		together := func() {
			var asking sync.WaitGroup
			for range maxInFlight {
				asking.Go(d.asks("7", 0).ask)
			}
			asking.Wait()
		}
		together()
		if u.inARow != 1 || !u.until.Equal(time.Now().Add(firstPause)) {
			t.Errorf("%d failures in a row, left alone until %v", u.inARow, u.until)
		}
		time.Sleep(firstPause)
		together()
		if u.inARow != 2 {
			t.Errorf("%d failures in a row after another pause", u.inARow)
		}
		f := d.asks("7", 0)
		if f.ask(); !bytes.Contains(f.answer, []byte(`"code":-32601,"message":"why"`)) || upstreams[0].asked.Load() != 2*maxInFlight {
			t.Errorf("while nobody can be asked: %s", f.answer)
		}
		time.Sleep(time.Minute)
		began := time.Now()
		time.Sleep(time.Second)
		u.succeeded()
		time.Sleep(time.Second)
		if u.failed(began, 0, true); u.inARow != 0 {
			t.Error("a slow call is held against a node that answered another")
		}
		if u.failed(began, 0, false); u.inARow != 1 {
			t.Error("a failure is not counted")
		}
	}, "stalls")
}

// TestConnectionsThatEndIdleLoseNoCall: the call is sent again on a new one, and the node has not failed.
func TestConnectionsThatEndIdleLoseNoCall(t *testing.T) {
	forwarding(t, func(t *testing.T, d *Door, _ []*fakeUpstream) {
		for range 3 {
			f := d.asks("7", 0)
			if f.ask(); string(f.answer) != `{"jsonrpc":"2.0","result":1,"id":7}` {
				t.Errorf("got %s", f.answer)
			}
		}
		if n := d.upstreams[0].failures.Load(); n != 0 {
			t.Errorf("%d failures", n)
		}
	}, "closes after each")
}

// TestLongAnswersTakeTheirMemoryAlone: checking an answer makes no tree of it, and all answers of an exchange are taken from the memory of its client.
func TestLongAnswersTakeTheirMemoryAlone(t *testing.T) {
	const size = 1 << 20
	long := []byte(`{"jsonrpc":"2.0","result":[` + strings.Repeat(`{"a":1},`, size/8) + `1],"id":123}` + strings.Repeat(" ", 100))
	d, err := New(Config{Ledger: newFakeLedger()})
	must(t, err)
	var before, after runtime.MemStats
	f := d.asks("7", 0)
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
			f := o.asks("7", 0)
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
		if _, err := New(Config{Forward: []string{"http://good", bad}}); err == nil || strings.Contains(err.Error(), "secret") {
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
			f := s.outside.asks("7", 0)
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
