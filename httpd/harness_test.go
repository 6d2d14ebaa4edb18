package httpd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/encode"
	"ledgerd/httpd/httpdtest"
)

var must, readFile = ledgertest.Must, ledgertest.ReadFile

func TestMain(m *testing.M) { httpdtest.Main(m) }

// patience bounds how long a test waits for what must happen, on a machine as busy as may be. It
// decides only when a test fails, never whether one passes.
const patience = 2 * time.Minute

// harness is a real server and a way to it.
type harness struct {
	*testing.T
	server *Server
	ledger *fakeLedger
	reach  func(from net.Addr) (net.Conn, error)
	conns  []net.Conn
	now    time.Time         // by the clock of the server
	shown  map[string]string // by tags: what they are of, and the other way round
	bodies map[string]string // of golden answers, by their targets
}

// serve starts a server with the fake ledger behind a listener in memory, and stops it with the test.
func serve(t *testing.T, change func(*Config)) *harness {
	t.Helper()
	ln := fasthttputil.NewInmemoryListener()
	return serveOn(t, ln, ln.DialWithLocalAddr, change)
}

// serveTCP starts one on a real socket.
func serveTCP(t *testing.T, change func(*Config)) *harness {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	return serveOn(t, ln, func(net.Addr) (net.Conn, error) { return net.Dial("tcp", ln.Addr().String()) }, change)
}

// servePipes starts one where each write of a client is one read of the server, and nothing is
// written that the client does not read.
func servePipes(t *testing.T, change func(*Config)) *harness {
	t.Helper()
	ln := fasthttputil.NewInmemoryListener() // for its Accept and Close
	pipes := &pipeListener{Listener: ln, pipes: make(chan net.Conn)}
	return serveOn(t, pipes, func(net.Addr) (net.Conn, error) {
		near, far := net.Pipe()
		if _, err := ln.Dial(); err != nil {
			return nil, err
		}
		pipes.pipes <- far
		return near, nil
	}, change)
}

// pipeListener gives a pipe for each connection.
type pipeListener struct {
	net.Listener
	pipes chan net.Conn
}

func (l *pipeListener) Accept() (net.Conn, error) {
	if _, err := l.Listener.Accept(); err != nil {
		return nil, err
	}
	return <-l.pipes, nil
}

func serveOn(t *testing.T, ln net.Listener, reach func(net.Addr) (net.Conn, error), change func(*Config)) *harness {
	t.Helper()
	h := &harness{T: t, ledger: newFakeLedger(), reach: reach, now: now, bodies: make(map[string]string)}
	config := Config{Ledger: h.ledger, Version: "0.1.0", Now: func() time.Time { return h.now }}
	if change != nil {
		change(&config)
	}
	h.server = New(config)
	served := make(chan error, 1)
	go func() { served <- h.server.Serve(ln) }()
	t.Cleanup(func() {
		// Idle connections of a test are not worth the wait for a graceful end.
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = h.server.Shutdown(ctx)
		must(t, <-served)
	})
	return h
}

// reply is a response as it was read.
type reply struct {
	status int
	header http.Header
	body   string
	closes bool // it announces the end of the connection
}

// isPage reports whether it is for people.
func (r *reply) isPage() bool {
	return strings.HasSuffix(r.header.Get("Content-Security-Policy"), pagePolicy)
}

// dial connects from an address, "" for one without an IP.
func (h *harness) dial(from string) net.Conn {
	h.Helper()
	var local net.Addr
	if from != "" {
		local = &net.TCPAddr{IP: net.ParseIP(from), Port: 1234}
	}
	c, err := h.reach(local)
	must(h, err)
	h.Cleanup(func() { _ = c.Close() })
	h.conns = append(h.conns, c)
	// So that a lost answer fails the test instead of hanging it.
	must(h, c.SetDeadline(time.Now().Add(patience)))
	return c
}

// get asks with GET, as doFrom does.
func (h *harness) get(target string, headers ...string) reply {
	h.Helper()
	return h.doFrom("", "GET", target, headers...)
}

// doFrom makes one exchange on a connection of its own, from an address, and checks what every response has.
func (h *harness) doFrom(from, method, target string, headers ...string) reply {
	h.Helper()
	r := h.ask(from, method, target, headers...)
	checkEvery(h.T, method+" "+target, r)
	checkDocument(h.T, method, target, r)
	return r
}

// ask makes one exchange on a connection of its own, and checks nothing.
func (h *harness) ask(from, method, target string, headers ...string) reply {
	h.Helper()
	c := h.dial(from)
	h.request(c, method, target, headers...)
	return readReply(h.T, bufio.NewReader(c), method)
}

// request asks on a connection, which need not be read.
func (h *harness) request(c net.Conn, method, target string, lines ...string) {
	h.Helper()
	send(h.T, c, method+" "+target+" HTTP/1.1\r\nHost: ledger\r\n"+strings.Join(append(lines, ""), "\r\n")+"\r\n")
}

func send(t *testing.T, c net.Conn, raw string) {
	t.Helper()
	if _, err := io.WriteString(c, raw); err != nil {
		t.Fatalf("cannot write %.100q: %v", raw, err)
	}
}

// replies reads responses until the server ends the connection. A reset is an error.
func (h *harness) replies(name string, c net.Conn) (replies []reply) {
	h.Helper()
	from := bufio.NewReader(c)
	for {
		switch _, err := from.Peek(1); {
		case errors.Is(err, io.EOF):
			return replies
		case err != nil:
			h.Errorf("%s: after %d replies: %v", name, len(replies), err)
			return replies
		}
		r := readReply(h.T, from, "GET")
		checkEvery(h.T, name, r)
		if r.status >= 400 {
			checkError(h.T, name, r)
		}
		replies = append(replies, r)
	}
}

// readReply reads one response.
func readReply(t *testing.T, from *bufio.Reader, method string) reply {
	t.Helper()
	r, err := tryReply(from, method)
	must(t, err)
	return r
}

func tryReply(from *bufio.Reader, method string) (reply, error) {
	r, err := http.ReadResponse(from, &http.Request{Method: method})
	if err != nil {
		return reply{}, err
	}
	body, err := io.ReadAll(r.Body)
	return reply{status: r.StatusCode, header: r.Header, body: string(body), closes: r.Close}, err
}

// decompress returns the body of a response as it was before it was compressed.
func decompress(t *testing.T, r reply) string {
	t.Helper()
	var response fasthttp.Response
	response.Header.SetContentEncoding(r.header.Get("Content-Encoding"))
	response.SetBodyString(r.body)
	out, err := response.BodyUncompressed()
	must(t, err)
	return string(out)
}

// checkEvery checks what every response carries.
func checkEvery(t *testing.T, what string, r reply) {
	t.Helper()
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin":   "*",
		"X-Content-Type-Options":        "nosniff",
		"Content-Security-Policy":       "default-src 'none'",
		"Vary":                          "Accept-Encoding",
		"Server":                        "",
		"Access-Control-Expose-Headers": "*",
	} {
		ledgertest.Equal(t, strings.TrimSuffix(r.header.Get(name), pagePolicy), want, "%s: %s", what, name)
	}
	for name, values := range r.header {
		if len(values) > 1 {
			t.Errorf("%s: %s is there more than once: %q", what, name, values)
		}
	}
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		if _, err := strconv.ParseUint(r.header.Get(name), 10, 64); err != nil {
			t.Errorf("%s: %s = %q, want a number", what, name, r.header.Get(name))
		}
	}
	if r.status >= 400 && !r.isPage() && !strings.HasPrefix(r.header.Get("Content-Type"), "application/json") {
		t.Errorf("%s: status %d has Content-Type %q", what, r.status, r.header.Get("Content-Type"))
	}
}

var document = func() *openapi3.T {
	doc, err := openapi3.NewLoader().LoadFromData(openAPIDocument)
	if err == nil {
		err = doc.Validate(context.Background())
	}
	if err != nil {
		panic(fmt.Sprintf("openapi.json: %v", err))
	}
	return doc
}()

// checkDocument checks a response against the embedded document.
func checkDocument(t *testing.T, method, target string, r reply) {
	t.Helper()
	if r.header.Get("Content-Encoding") != "" || method == "HEAD" || r.isPage() {
		return // the same body was or will be checked plain, or is no record
	}
	path, _, _ := strings.Cut(strings.TrimPrefix(target, "http://elsewhere"), "?")
	template, _, _ := pathOracle(path)
	item := document.Paths.Value(template)
	if template == "" && r.status < 400 {
		return // a page
	}
	if method == "OPTIONS" && r.status == 204 { // of the protocol, no operation
		if r.body != "" || r.header.Get("Access-Control-Allow-Headers") == "" {
			t.Errorf("%s %s: %q with header %v", method, target, r.body, r.header)
		}
		return
	}
	if item == nil || item.GetOperation(method) == nil {
		checkError(t, method+" "+target, r)
		return
	}
	request, err := http.NewRequest(method, "/api"+template, nil)
	must(t, err)
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: request,
			Route:   &routers.Route{Spec: document, Path: template, PathItem: item, Method: method, Operation: item.GetOperation(method)},
		},
		Status:  r.status,
		Header:  r.header,
		Body:    io.NopCloser(strings.NewReader(r.body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	})
	if err != nil {
		t.Errorf("%s %s: status %d does not fit the document: %v\n%s", method, target, r.status, err, r.body)
	}
}

// checkError checks an answer the document has no operation for: an error record.
func checkError(t *testing.T, what string, r reply) {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(r.body), &value); err != nil {
		t.Errorf("%s: status %d: body %q is no JSON: %v", what, r.status, r.body, err)
		return
	}
	if err := document.Components.Schemas["Error"].Value.VisitJSON(value); err != nil {
		t.Errorf("%s: status %d: body %q is no error record: %v", what, r.status, r.body, err)
	}
}

// errorBody is the body of an error.
func errorBody(status int, details string) string {
	return fmt.Sprintf(`{"error":%q,"details":%q}`, encode.ErrorText(status), details)
}
