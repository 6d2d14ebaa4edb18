package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/csv"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/valyala/fasthttp"
)

// secured is a node behind TLS that answers in all the ways that servers and proxies do. It keeps what it was asked.
type secured struct {
	url, ca string
	over    chan struct{} // closed when nobody asks any more

	mu     sync.Mutex
	asked  []string // path with query
	fields map[string]bool
	slot   int
}

func startSecured(t *testing.T) *secured {
	t.Helper()
	lender := httptest.NewTLSServer(nil) // of a certificate
	defer lender.Close()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: lender.TLS.Certificates})
	must(t, err)
	s := &secured{url: "https://" + ln.Addr().String(), ca: filepath.Join(t.TempDir(), "ca.pem"), fields: map[string]bool{}, over: make(chan struct{})}
	must(t, os.WriteFile(s.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: lender.Certificate().Raw}), 0o600))
	server := &fasthttp.Server{Handler: s.handle, Logger: quiet{}}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	t.Cleanup(func() { // connections end with their clients: a shutdown waits for those that nothing was asked over
		close(s.over)
		_ = ln.Close()
		<-ended
	})
	return s
}

// quiet drops what a server says of handshakes that end.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

func (s *secured) handle(ctx *fasthttp.RequestCtx) {
	s.mu.Lock()
	s.slot++
	slot := s.slot
	s.asked = append(s.asked, string(ctx.RequestURI())+string(ctx.PostBody()))
	host, _, _ := net.SplitHostPort(ctx.RemoteAddr().String())
	for _, field := range []string{"from " + host, "key " + string(ctx.Request.Header.Peek("X-API-Key")), "test " + string(ctx.Request.Header.Peek("X-Test"))} {
		s.fields[field] = true
	}
	s.mu.Unlock()
	ctx.Response.Header.Set("X-Ledger-Slot", fmt.Sprint(slot))
	if string(ctx.Request.Header.Peek("Accept-Encoding")) == "gzip" {
		defer func() {
			ctx.Response.Header.Set("Content-Encoding", "gzip")
			ctx.SetBody(fasthttp.AppendGzipBytes(nil, ctx.Response.Body()))
		}()
	}
	switch path := string(ctx.Path()); path {
	case "/api/chunked":
		ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
			for _, part := range []string{`{"slot":`, `17`, `}`} {
				_, _ = w.WriteString(part)
				_ = w.Flush()
			}
		})
	case "/api/slow":
		if slot > 1 { // the first only looks whether it is there
			<-s.over
		}
	case "/api/falls":
		ctx.Response.Header.Set("X-Ledger-Slot", fmt.Sprint(100-slot))
		ctx.SetBodyString("{}")
	case "/door":
		if answer := `{"jsonrpc":"2.0","id":1,"result":1}`; !strings.Contains(string(ctx.PostBody()), "getNothing") {
			ctx.SetBodyString(answer)
			break
		}
		ctx.SetBodyString(`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`)
	case "/api/nothing":
		ctx.SetStatusCode(fasthttp.StatusNoContent)
	case "/api/head":
		if slot > 1 {
			ctx.Response.Header.Set("X-Long", strings.Repeat("x", 10_000))
		}
	case "/api/text":
		ctx.SetBodyString("{")
	case "/api/accounts/program/11111111111111111111111111111111":
		ctx.SetBodyString(`{"accounts":[{"pubkey":"K1"},{"pubkey":"closed"}]}`)
	case "/api/account/closed", "/api/nope":
		ctx.SetStatusCode(fasthttp.StatusNotFound)
	default:
		ctx.SetBodyString("{}")
	}
}

// loadFigures is what --json must hold of a load of a server of any kind.
type loadFigures struct {
	Requests struct{ Due, Sent, OK, Failed, Gone, Unsent int }
	Latency  struct{ Count int } `json:"latency_ms"`
	Errors   map[string]int
	Wrong    map[string]int
	Missed   []string
	Search   []struct{ Rate float64 }
}

// Each flag does what it says, over TLS: what the server was asked, what is counted, and how the command ends.
func TestLoadAsksAsItIsTold(t *testing.T) {
	t.Parallel()
	keys := filepath.Join(t.TempDir(), "keys")
	must(t, os.WriteFile(keys, []byte("one\ntwo\n"), 0o600))
	const one, two = "11111111111111111111111111111111", "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"
	wallets := one + "," + two
	never := func(*loadFigures) bool { return false }
	for name, tt := range map[string]struct {
		args   string
		code   int
		says   string   // in what is said for people
		fields []string // what the server must have seen
		paths  []string // what it must have been asked for, and nothing else of the interface but the node's status
		as     func(f *loadFigures) bool
	}{
		"so many": {"-n 50 --rate max --path /ok", exitOK, "50 due, 50 sent, 50 ok", nil, []string{"/api/ok"},
			func(f *loadFigures) bool { return f.Requests.OK == 50 && f.Latency.Count == 50 }},
		"so many at a rate": {"-n 50 --rate 5000 --path /ok --arrivals poisson --ramp 10ms", exitOK, "50 due", nil, []string{"/api/ok"},
			func(f *loadFigures) bool { return f.Requests.OK == 50 }},
		"fields, keys and addresses": {"-n 40 -c 4 --path /ok --from 127.0.0.2,127.0.0.3 -H X-Test:1 --api-key-file " + keys, exitOK, "40 ok",
			[]string{"from 127.0.0.2", "from 127.0.0.3", "key one", "key two", "test 1", "no from 127.0.0.1"}, []string{"/api/ok"}, nil},
		"no such address": {"-n 5 --path /ok --from 192.0.2.1", exitFailure, "cannot assign requested address", nil, []string{}, never},
		"paths in turns": {"-n 10 --path /ok --path /api/status?full=1 --path URL/other --min-slot 7", exitOK, "10 ok", nil,
			[]string{"/api/ok?min_slot=7", "/api/status?full=1&min_slot=7", "/other?min_slot=7"}, nil},
		"the URL of a path": {"-n 5 PASTED", exitOK, "5 ok", nil, []string{"/api/blocks/latest"}, nil},
		"in chunks":         {"-n 20 --path /chunked --verify", exitOK, "20 ok", nil, []string{"/api/chunked"}, nil},
		"too slow": {"-n 4 -c 4 --path /slow --timeout 3s", exitOK, "no response within the timeout", nil, []string{"/api/slow"},
			func(f *loadFigures) bool {
				return f.Requests.Failed == 4 && f.Errors["no response within the timeout"] == 4
			}},
		"closed accounts": {"-n 50 --slo failed=0 --verify", exitOK, "404 of what the node had told of", nil, nil,
			func(f *loadFigures) bool {
				return f.Requests.Gone > 0 && f.Requests.Failed == 0 && f.Requests.OK+f.Requests.Gone == 50
			}},
		"compressed": {"-n 20 --slo failed=0 --verify -H Accept-Encoding:gzip -H If-None-Match:x", exitOK, "20 due, 20 sent", nil, nil,
			func(f *loadFigures) bool { return f.Requests.OK+f.Requests.Gone == 20 }},
		"falling slots": {"-n 20 -c 1 --rate max --path /falls --verify", exitFailure, "the slot is below that of the response before", nil, []string{"/api/falls"},
			func(f *loadFigures) bool { return f.Requests.Failed == 19 && len(f.Wrong) == 1 }},
		"no body":      {"-n 20 --path /nothing --verify", exitOK, "20 ok", nil, []string{"/api/nothing"}, nil},
		"a long head":  {"-n 4 -c 4 --path /head", exitOK, "the head of the response is longer than 8 KiB", nil, []string{"/api/head"}, nil},
		"no JSON":      {"-n 20 --path /text --verify", exitFailure, "20 responses are wrong: the body is not JSON", nil, []string{"/api/text"}, nil},
		"unverified":   {"-n 20 --path /text", exitOK, "20 ok", nil, []string{"/api/text"}, nil},
		"missed":       {"-n 20 --path /ok --slo p50=1ns,failed=1%", exitFailure, "p50=1ns: it is", nil, []string{"/api/ok"}, func(f *loadFigures) bool { return len(f.Missed) == 1 }},
		"search":       {"-d 20ms --warmup 0 --path /ok --slo max=1ns --rate search", exitFailure, "no rate meets max=1ns", nil, []string{"/api/ok"}, func(f *loadFigures) bool { return len(f.Search) == 10 }},
		"no such path": {"-n 5 --path /nope", exitFailure, "/api/nope is answered 404", nil, []string{"/api/nope"}, never},
		"not trusted":  {"-n 5 --path /ok --ca /dev/null", exitUsage, "the file of authorities", nil, []string{}, never},
		"JSON-RPC": {"-n 20 DOOR --verify --rpc getSlot --rpc getBalance%20[\"*\"] --keys " + wallets, exitOK, "20 ok", nil, []string{
			`/door{"jsonrpc":"2.0","id":1,"method":"getBalance","params":["` + one + `"]}`, `/door{"jsonrpc":"2.0","id":1,"method":"getBalance","params":["` + two + `"]}`,
			`/door{"jsonrpc":"2.0","id":1,"method":"getSlot","params":[]}`,
		}, nil},
		"no parameters":  {"DOOR --rpc getBalance%20[", exitUsage, "is not METHOD [PARAMS] in JSON", nil, []string{}, never},
		"no keys":        {"DOOR --rpc getBalance%20[\"*\"]", exitUsage, "--keys names them", nil, []string{}, never},
		"no such method": {"-n 20 DOOR --rpc getNothing", exitFailure, "Method not found", nil, nil, never},
		"without check":  {"-n 5 --path /ok --insecure", exitOK, "5 ok", nil, []string{"/api/ok"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startSecured(t)
			figures := filepath.Join(t.TempDir(), "figures.json")
			address := s.url
			if strings.Contains(tt.args, "PASTED") {
				address += "/api/blocks/latest"
			} else if strings.Contains(tt.args, "DOOR") {
				address += "/door"
			}
			words := strings.Fields(strings.NewReplacer("PASTED", "", "DOOR", "", "URL", s.url).Replace(tt.args))
			for i := range words {
				words[i] = strings.ReplaceAll(words[i], "%20", " ")
			}
			args := append([]string{"load", address, "--json", figures}, words...)
			if !strings.Contains(tt.args, "--ca") && !strings.Contains(tt.args, "--insecure") {
				args = append(args, "--ca", s.ca)
			}
			code, said := does(t, args...)
			if all := said.out.String() + said.err.String(); code != tt.code || !strings.Contains(all, tt.says) {
				t.Errorf("exit code %d, want %d, and %q:\n%s", code, tt.code, tt.says, all)
			}
			var f loadFigures
			content, err := os.ReadFile(figures)
			if err == nil && json.Unmarshal(content, &f) == nil && tt.as != nil && !tt.as(&f) {
				t.Errorf("figures: %s", content)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, field := range tt.fields {
				if absent, no := strings.CutPrefix(field, "no "); s.fields[absent] == no {
					t.Errorf("the server was sent %v, not %q", s.fields, field)
				}
			}
			slices.Sort(s.asked)
			if asked := slices.DeleteFunc(slices.Compact(s.asked), func(path string) bool { return strings.HasSuffix(path, "/api/status") }); tt.paths != nil && !slices.Equal(asked, tt.paths) {
				t.Errorf("the server was asked for %q, want %q", asked, tt.paths)
			}
		})
	}
}

// Figures go to the standard output and text beside; of each second there is a line.
func TestLoadWritesForPrograms(t *testing.T) {
	t.Parallel()
	s := startSecured(t)
	seconds := filepath.Join(t.TempDir(), "seconds.csv")
	code, said := does(t, "load", s.url, "--ca", s.ca, "-n", "30", "--path", "/ok", "--json", "-", "--csv", seconds)
	var f loadFigures
	if err := json.Unmarshal(said.out.Bytes(), &f); code != exitOK || err != nil || f.Requests.OK != 30 || !strings.Contains(said.err.String(), "30 ok") {
		t.Errorf("exit code %d, %v, said %q and %q", code, err, &said.err, &said.out)
	}
	code, said = does(t, "load", s.url, "--ca", s.ca, "-n", "30", "--path", "/ok", "--csv", "-")
	if lines, err := csv.NewReader(&said.out).ReadAll(); code != exitOK || err != nil || len(lines) < 2 || !strings.Contains(said.err.String(), "30 ok") {
		t.Errorf("exit code %d, %v, said %q and %q", code, err, &said.err, lines)
	}
	content, err := os.ReadFile(seconds)
	must(t, err)
	lines, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
	must(t, err)
	all := 0
	for _, line := range lines[1:] {
		n := 0
		_, err := fmt.Sscan(line[2], &n)
		must(t, err)
		all += n
	}
	if all != 30 || lines[0][2] != "responses" {
		t.Errorf("%d responses in\n%s", all, content)
	}
}

// A Unix socket stands for host and port: the host need not exist.
func TestLoadAsksOverAUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", path)
	must(t, err)
	server := httptest.NewUnstartedServer(new(fakeNode))
	must(t, server.Listener.Close())
	server.Listener = ln
	server.Start()
	defer server.Close()
	if code, s := does(t, "load", "http://node.invalid", "--unix-socket", path, "-n", "20"); code != exitOK || !strings.Contains(s.out.String(), "20 ok") {
		t.Errorf("exit code %d, said %q", code, &s.err)
	}
}
