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
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger/ledgertest"
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
		if !strings.HasSuffix(field, " ") {
			s.fields[field] = true
		}
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
	case "/api/full": // and it does not say for how long
		ctx.SetStatusCode(fasthttp.StatusTooManyRequests)
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
	case "/api/ws/accounts":
		ctx.Error(`{"error":"Invalid request parameters","details":"no such commitment"}`, fasthttp.StatusBadRequest)
	case "/api/account/closed", "/api/nope":
		ctx.SetStatusCode(fasthttp.StatusNotFound)
	default:
		ctx.SetBodyString("{}")
	}
}

// Where no rate meets what is asked, each was tried.
func TestSearchTriesEveryRate(t *testing.T) {
	t.Parallel()
	s := startSecured(t)
	code, said := does(t, "load", s.url, "--ca", s.ca, "-d", "20ms", "--warmup", "0", "--path", "/ok", "--slo", "max=1ns", "--rate", "search", "--json", "-")
	var f figures
	err := json.Unmarshal(said.out.Bytes(), &f)
	if code != exitFailure || err != nil || len(f.Search) != 10 || !strings.Contains(said.err.String(), "no rate meets max=1ns") {
		t.Errorf("exit code %d, %v, %+v, said %q", code, err, f, &said.err)
	}
}

// Figures go to the standard output and text beside; of each second there is a line.
func TestLoadWritesForPrograms(t *testing.T) {
	t.Parallel()
	s := startSecured(t)
	seconds := filepath.Join(t.TempDir(), "seconds.csv")
	code, said := does(t, "load", s.url, "--ca", s.ca, "-n", "30", "--path", "/ok", "--json", "-", "--csv", seconds)
	var f figures
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

// A Unix socket stands for host and port: the host need not exist. HTTP/2 is spoken where that is asked for.
func TestLoadAsksOverAUnixSocket(t *testing.T) {
	t.Parallel()
	for flags, protocol := range map[string]string{"http://node.invalid": "HTTP/1.1", "http://node.invalid --http2": "HTTP/2.0", "https://node.invalid --insecure --http2": "HTTP/2.0"} {
		path := filepath.Join(t.TempDir(), "s")
		ln, err := net.Listen("unix", path)
		must(t, err)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ledgertest.Equal(t, r.Proto, protocol, "%s: the protocol", flags)
			new(fakeNode).ServeHTTP(w, r)
		}))
		must(t, server.Listener.Close())
		server.Listener, server.EnableHTTP2, server.Config.Protocols = ln, true, new(http.Protocols)
		server.Config.Protocols.SetHTTP1(true)
		server.Config.Protocols.SetHTTP2(true)
		server.Config.Protocols.SetUnencryptedHTTP2(true)
		if strings.HasPrefix(flags, "https") {
			server.StartTLS()
		} else {
			server.Start()
		}
		defer server.Close()
		args := append(strings.Fields("load "+flags), "--unix-socket", path, "-n", "20")
		if code, s := does(t, args...); code != exitOK || !strings.Contains(s.out.String(), "20 ok") {
			t.Errorf("%s: exit code %d, said %q", flags, code, &s.err)
		}
	}
}
