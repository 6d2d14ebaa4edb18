package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"
	"go.uber.org/goleak"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd"
)

var update = flag.Bool("update", false, "rewrite the answers in testdata")

var must, readFile = ledgertest.Must, ledgertest.ReadFile

func TestMain(m *testing.M) {
	new(fasthttp.ResponseHeader).Header() // starts fasthttp's clock, which outlives any bubble
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"), // looks for idle connections once more
	)
}

// rig is a door on a real server, behind a listener in memory.
type rig struct {
	testing.TB
	ledger  *fakeLedger
	door    *Door
	client  http.Client
	connect func() (net.Conn, error)
}

func serve(t testing.TB, l *fakeLedger, change func(*Config, *httpd.Config)) *rig {
	t.Helper()
	config, public := Config{Ledger: l, Version: "0.1.0"}, httpd.Config{Ledger: l, Version: "0.1.0"}
	if change != nil {
		change(&config, &public)
	}
	door, err := New(config)
	must(t, err)
	server := httpd.New(public)
	ln := fasthttputil.NewInmemoryListener()
	served := make(chan error, 1)
	go func() { served <- server.ServeDoor(ln, door) }()
	connect := func() (net.Conn, error) {
		return ln.DialWithLocalAddr(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1234})
	}
	r := &rig{TB: t, ledger: l, door: door, connect: connect}
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return connect() }}
	r.client.Transport = transport
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = server.Shutdown(ctx)
		must(t, <-served)
	})
	return r
}

// do makes one exchange.
func (r *rig) do(method, path, contentType, body string) (*http.Response, string) {
	r.Helper()
	request, err := http.NewRequest(method, "http://ledger"+path, strings.NewReader(body))
	must(r, err)
	if len(body) > 64<<10 {
		// It is refused for its length. The connection ends then, with the answer if it is still being sent: so the rest of it never is.
		rest, end := io.Pipe()
		defer end.Close()
		request.Body = io.NopCloser(io.MultiReader(strings.NewReader(body[:1]), rest))
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := r.client.Do(request)
	must(r, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	must(r, err)
	return response, string(answer)
}

// post sends a body and returns what comes back with 200.
func (r *rig) post(body string) string {
	r.Helper()
	response, answer := r.do("POST", "/", "application/json", body)
	if response.StatusCode != 200 {
		r.Fatalf("%.200s: status %d: %s", body, response.StatusCode, answer)
	}
	return answer
}

// call returns the answer of one call, without what is the same in all.
func (r *rig) call(method, params string) string {
	r.Helper()
	answer := r.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params))
	if !json.Valid([]byte(answer)) {
		r.Errorf("%s %s: %s is no JSON", method, params, answer)
	}
	inner, whole := strings.CutSuffix(answer, `,"id":1}`)
	inner, begins := strings.CutPrefix(inner, `{"jsonrpc":"2.0",`)
	if !whole || !begins {
		r.Errorf("%s %s: %s", method, params, answer)
	}
	return inner
}

// names stand for keys and signatures in testdata.
func names() *strings.Replacer {
	var pairs []string
	for n := range byte(150) {
		pairs = append(pairs, fmt.Sprintf("<sig%d>", n), testSignature(n).String(), fmt.Sprintf("<%d>", n), testKey(n).String())
	}
	return strings.NewReplacer(append(pairs, "<token>", ledger.TokenProgram.String(), "<token2022>", ledger.Token2022Program.String())...)
}

// TestCalls holds the answers of every method against testdata/calls.txt: a line with the name and the parameters of a call, one with its
// answer, and headings that say what the ledger is like.
func TestCalls(t *testing.T) {
	const file = "testdata/calls.txt"
	refusing := httptest.NewServer(http.NotFoundHandler())
	defer refusing.Close()
	ledgers := map[string]func(*fakeLedger, *Config){
		"a node that holds all":                     func(*fakeLedger, *Config) {},
		"a node that holds a part":                  func(l *fakeLedger, _ *Config) { l.lacks = true },
		"a node that fetches":                       func(l *fakeLedger, _ *Config) { l.lacks, l.fetches = true, true },
		"a node with another to ask, which refuses": func(_ *fakeLedger, c *Config) { c.Forward = []string{refusing.URL} },
		"a node that lists by mint":                 func(_ *fakeLedger, c *Config) { c.IndexMints = true },
		"a node with a hash":                        func(_ *fakeLedger, c *Config) { c.GenesisHash, c.SlotsPerEpoch = testKey(5).String(), 8 },
		"a node that recovers": func(l *fakeLedger, _ *Config) {
			l.err, l.status.NotReady = ledger.ErrRecovering, ledger.ErrRecovering
			l.status.Unhealthy = "recovering"
		},
		"a node far ahead of its first block": func(l *fakeLedger, _ *Config) {
			head := *l.head.Load()
			for level := range head.Tips {
				head.Tips[level].Slot = 600_000
			}
			l.head.Store(&head)
		},
		"a node that is overloaded": func(l *fakeLedger, _ *Config) { l.err = ledger.ErrUnavailable },
		"a node without heights": func(l *fakeLedger, _ *Config) {
			for _, b := range l.blocks {
				b.Height, b.Time = ledger.Opt[uint64]{}, ledger.Opt[int64]{}
			}
		},
	}
	replacer := names()
	asked := make(map[string]bool)
	var r *rig
	var out bytes.Buffer
	var request string
	for line := range strings.Lines(string(readFile(t, file))) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "## "):
			change, known := ledgers[strings.TrimPrefix(line, "## ")]
			if !known {
				t.Fatalf("%s: no ledger is called %q", file, line)
			}
			r = serve(t, newFakeLedger(), func(c *Config, _ *httpd.Config) { change(c.Ledger.(*fakeLedger), c) })
		case strings.HasPrefix(line, "> "):
			request = strings.TrimPrefix(line, "> ")
			method, params, _ := strings.Cut(request, " ")
			asked[method] = true
			got := r.call(method, replacer.Replace(params))
			fmt.Fprintf(&out, "%s\n< %s\n", line, got)
			continue
		case strings.HasPrefix(line, "< "):
			continue
		}
		fmt.Fprintln(&out, line)
	}
	for _, m := range r.door.methods[:len(r.door.methods)-1] {
		if !asked[m.name] {
			t.Errorf("%s does not ask %s", file, m.name)
		}
	}
	if *update {
		must(t, os.WriteFile(file, out.Bytes(), 0o644))
	}
	want := strings.Split(string(readFile(t, file)), "\n")
	for i, got := range strings.Split(out.String(), "\n") {
		if i < len(want) && got != want[i] {
			t.Errorf("%s:%d: got\n%s, want\n%s", file, i+1, got, want[i])
		}
	}
}

// TestCallsCountAgainstTheWindows: each call of a batch is a request, and those of one that passes the limit are not answered.
func TestCallsCountAgainstTheWindows(t *testing.T) {
	r := serve(t, newFakeLedger(), func(_ *Config, c *httpd.Config) { c.PerMinute = 10 })
	batch := func(n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"getSlot"},`, n), ",") + "]"
	}
	for i, tt := range []struct{ calls, status, left int }{{4, 200, 6}, {1, 200, 5}, {6, 429, 4}, {4, 200, 0}, {1, 429, 0}} {
		response, body := r.do("POST", "/", "application/json", batch(tt.calls))
		left := response.Header.Get("X-RateLimit-Remaining")
		if response.StatusCode != tt.status || left != fmt.Sprint(tt.left) {
			t.Errorf("%d: %d calls: status %d, %s left, want %d, %d: %s", i, tt.calls, response.StatusCode, left, tt.status, tt.left, body)
		}
		if tt.status == 429 && (response.Header.Get("Retry-After") == "" || !strings.Contains(body, `"error":{"code":429,`)) {
			t.Errorf("%d: %v %s", i, response.Header, body)
		}
	}
}

// TestBatches covers order, notifications, ids of every type and what is no call.
func TestBatches(t *testing.T) {
	r := serve(t, newFakeLedger(), nil)
	const ok, slot = `{"jsonrpc":"2.0","result":20,"id":`, `"jsonrpc":"2.0","method":"getSlot"`
	invalid := func(why, id string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: %s"},"id":%s}`, why, id)
	}
	const noBatch = "a batch has from 1 to 100 calls"
	parseError := `{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error: the body is no JSON, or nested deeper than 300 times"},"id":null}`
	noText := `{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error: half a surrogate pair stands in the id"},"id":null}`
	for body, want := range map[string]string{
		`{` + slot + `,"id":"a\u0062\n"}`:                                ok + `"ab\n"}`,
		`{` + slot + `,"id":18446744073709551616.50}`:                    ok + `18446744073709551616.50}`,
		`{` + slot + `,"id":-1e400}`:                                     ok + `-1e400}`,
		`{` + slot + `,"id":"\ud83d\ude00\\ud800"}`:                      ok + "\"\U0001f600" + `\\ud800"}`,
		`{` + slot + `,"id":"\ud800"}`:                                   noText,
		`{` + slot + `,"id":"\ud800\u0041"}`:                             noText,
		`[{` + slot + `,"id":"\ude00"},{` + slot + `,"id":1}]`:           `[` + noText + `,` + ok + `1}]`,
		`{` + slot + `,"id":null}`:                                       ok + `null}`,
		`{` + slot + `,"id":1,"id":2}`:                                   ok + `1}`,
		`{` + slot + `,"id":true}`:                                       invalid("an id is a string, a number or null", "null"),
		`{` + slot + `,"id":{}}`:                                         invalid("an id is a string, a number or null", "null"),
		`{` + slot + `}`:                                                 "",
		`{"jsonrpc":"2.0","method":"getSlot","params":7}`:                "",
		`[{` + slot + `},{` + slot + `}]`:                                "",
		`[{` + slot + `,"id":1},{` + slot + `},{` + slot + `,"id":"2"}]`: `[` + ok + `1},` + ok + `"2"}]`,
		`[{` + slot + `},{` + slot + `,"id":3}]`:                         `[` + ok + `3}]`,
		`{"jsonrpc":"2.0","id":5,"method":""}`:                           `{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":5}`,
		`[{` + slot + `,"id":1},{"jsonrpc":"2.0","method":""}]`:          `[` + ok + `1}]`,
		`[1]`:                                 `[` + invalid("a call is an object", "null") + `]`,
		`"getSlot"`:                           invalid("a call is an object", "null"),
		`[]`:                                  invalid(noBatch, "null"),
		`{"jsonrpc":"1.0","id":5}`:            invalid(`jsonrpc must be \"2.0\"`, "5"),
		`{"jsonrpc":"2.0","id":5}`:            invalid("method must be a string", "5"),
		`{"jsonrpc":"2.0","id":5,"method":7}`: invalid("method must be a string", "5"),
		`{"jsonrpc":"2.0","id":5,"method":"getSlot","params":{}}`: `{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid params: params must be an array"},"id":5}`,
		`{"jsonrpc":"2.0","id":5,"method":"none","params":{}}`:    `{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":5}`,
		``:                                     parseError,
		`{` + slot + `,"id":nan}`:              parseError,
		`{` + slot + `,"id":"` + "\xff" + `"}`: parseError,
		`{` + slot + `,"id":1} x`:              parseError,
		strings.Repeat("[", 1000) + strings.Repeat("]", 1000): parseError,
		"[" + strings.Repeat(`1,`, 100) + "1]":                invalid(noBatch, "null"),
	} {
		if got := r.post(body); got != want {
			t.Errorf("%.100s: got\n%s, want\n%s", body, got, want)
		}
	}
}

// TestDoorRefusesWhatIsNoCall covers paths, methods, types and lengths, and the fields of browsers.
func TestDoorRefusesWhatIsNoCall(t *testing.T) {
	r := serve(t, newFakeLedger(), nil)
	const call = `{"jsonrpc":"2.0","id":1,"method":"getSlot"}`
	for _, tt := range []struct {
		method, path, kind, body string
		status                   int
		want                     string
	}{
		{"POST", "/", "", call, 200, `"result":20`},
		{"POST", "/?api-key=x", "application/json; charset=utf-8", call, 200, `"result":20`},
		{"POST", "/", "text/plain", call, 415, `"code":415`},
		{"POST", "/api", "application/json", call, 404, `"code":404`},
		{"GET", "/", "", "", 405, `"code":405`},
		{"GET", "/health", "", "", 200, "ok"},
		{"HEAD", "/health", "", "", 200, ""},
		{"POST", "/", "application/json", call + strings.Repeat(" ", 64<<10), 413, `"code":413`},
		{"OPTIONS", "/", "", "", 204, ""},
	} {
		response, body := r.do(tt.method, tt.path, tt.kind, tt.body)
		if response.StatusCode != tt.status || !strings.Contains(body, tt.want) || response.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s %s %s: status %d, %v: %s", tt.method, tt.path, tt.kind, response.StatusCode, response.Header, body)
		}
		if allowed := response.Header.Get("Access-Control-Allow-Headers"); tt.status == 204 && !strings.Contains(allowed, "solana-client") {
			t.Errorf("OPTIONS allows the fields %q", allowed)
		}
		if slot := response.Header.Get("X-Ledger-Slot"); tt.want == `"result":20` && slot != "20" {
			t.Errorf("%s: X-Ledger-Slot is %q", tt.body, slot)
		}
	}
	for _, tt := range []struct {
		status ledger.NodeStatus
		want   string
	}{{ledger.NodeStatus{Unhealthy: "stalled"}, "behind"}, {ledger.NodeStatus{Unhealthy: "recovering", NotReady: ledger.ErrRecovering}, "unknown"}} {
		r.ledger.status = tt.status
		if _, body := r.do("GET", "/health", "", ""); body != tt.want {
			t.Errorf("%+v: /health answers %s, want %s", tt.status, body, tt.want)
		}
	}
}

// FuzzBody: whatever is sent, the answer is JSON or nothing, each with an id and either a result or an error, and what is no JSON is called that.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"getAccountInfo","params":["` + wallet.String() + `",{"encoding":"base64","minContextSlot":18446744073709551615}]}`,
		`[{"jsonrpc":"2.0","id":"x","method":"getSlot","params":[{"commitment":"processed","commitment":7}]},{"id":1e99}]`,
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"getBlocks","params":[9007199254740993,-1]}`,
		strings.Repeat(`[`, 400), `[` + strings.Repeat(`{"id":[]},`, 99) + `{}]`, "\"\\ud800\"", `{"id":0.1e+1,"jsonrpc":"2.0","method":"\u0067etSlot"}`,
	} {
		f.Add([]byte(seed))
	}
	r := serve(f, newFakeLedger(), nil)
	f.Fuzz(func(t *testing.T, body []byte) {
		in := &rig{TB: t, client: r.client}
		response, text := in.do("POST", "/", "application/json", string(body))
		if response.StatusCode == 413 {
			return
		}
		if strings.Contains(text, `"code":-32700`) {
			if plain := !bytes.ContainsFunc(body, func(c rune) bool { return c > 127 || c == '\\' }); json.Valid(body) && plain && bytes.Count(body, []byte{'['})+bytes.Count(body, []byte{'{'}) < 300 {
				t.Fatalf("%q is JSON, and refused", body)
			}
			return
		}
		if !json.Valid(body) {
			t.Fatalf("%q is no JSON, and taken", body)
		}
		answer := []byte(text)
		var got []struct {
			JSONRPC       string
			ID            json.RawMessage
			Result, Error json.RawMessage
		}
		if len(answer) > 0 && answer[0] == '{' {
			answer = append(append([]byte{'['}, answer...), ']')
		}
		if len(answer) > 0 {
			must(t, json.Unmarshal(answer, &got))
		}
		for _, a := range got {
			if a.JSONRPC != "2.0" || a.ID == nil || (a.Result == nil) == (a.Error == nil) {
				t.Fatalf("%q: %s", body, answer)
			}
		}
	})
}
