package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp/fasthttputil"
	"go.uber.org/goleak"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd"
	"ledgerd/httpd/encode"
	"ledgerd/httpd/httpdtest"
	"ledgerd/httpd/stream"
)

var must, readFile = ledgertest.Must, ledgertest.ReadFile

func TestMain(m *testing.M) {
	encode.AppendCompressed(nil, []byte("x"), encode.Zstd) // makes the encoders of the process, which are for bubbles too
	// It looks for idle connections once more.
	httpdtest.Main(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"))
}

// settings are those of a node.
type settings struct {
	*fakeLedger
	door   Config
	public httpd.Config
	hub    stream.Config
}

// rig is a door on a real server, behind a listener in memory.
type rig struct {
	testing.TB
	ledger  *fakeLedger
	door    *Door
	client  http.Client
	connect func() (net.Conn, error)
}

func serve(t testing.TB, s *settings) *rig {
	t.Helper()
	s.door.Ledger, s.door.Version, s.public.Ledger, s.public.Version = s.fakeLedger, "0.1.0", s.fakeLedger, "0.1.0"
	door, err := New(s.door)
	must(t, err)
	server := httpd.New(s.public)
	ln := fasthttputil.NewInmemoryListener()
	served := make(chan error, 1)
	go func() { served <- server.ServeDoor(ln, door) }()
	connect := func() (net.Conn, error) {
		return ln.DialWithLocalAddr(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1234})
	}
	r := &rig{TB: t, ledger: s.fakeLedger, door: door, connect: connect}
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
	return strings.NewReplacer(append(pairs, "<system>", ledger.SystemProgram.String(), "<token>", ledger.TokenProgram.String(), "<token2022>", ledger.Token2022Program.String())...)
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
	r := serve(f, &settings{fakeLedger: newFakeLedger()})
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
