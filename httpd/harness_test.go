package httpd

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/valyala/fasthttp/fasthttputil"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// fasthttp keeps its clock for the life of the process, and lets the cleaner of a
		// stopped worker pool sleep to its end.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
}

// patience bounds how long a test waits for what must happen, on a machine as busy as may be. It
// decides only when a test fails, never whether one passes.
const patience = time.Minute

// harness is a real server over an in-memory listener.
type harness struct {
	*testing.T
	server *Server
	ledger *fakeLedger
	ln     *fasthttputil.InmemoryListener
}

// serve starts a server with the fake ledger and stops it with the test.
func serve(t *testing.T, change func(*Config)) *harness {
	t.Helper()
	h := &harness{T: t, ledger: newFakeLedger(), ln: fasthttputil.NewInmemoryListener()}
	config := Config{Ledger: h.ledger, Version: "0.1.0", Now: func() time.Time { return now }}
	if change != nil {
		change(&config)
	}
	h.server = New(config)
	runUntilEnd(t, h.server.acceptor, h.ln)
	return h
}

// runUntilEnd serves ln and shuts down with the test.
func runUntilEnd(t *testing.T, a *acceptor, ln net.Listener) {
	served := make(chan error, 1)
	go func() { served <- a.Serve(ln) }()
	t.Cleanup(func() {
		// Idle connections of a test are not worth the wait for a graceful end.
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = a.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

// reply is a response as it was read.
type reply struct {
	status int
	header http.Header
	body   string
}

// dial connects from an address, "" for one without an IP.
func (h *harness) dial(from string) net.Conn {
	h.Helper()
	var local net.Addr
	if from != "" {
		local = &net.TCPAddr{IP: net.ParseIP(from), Port: 1234}
	}
	c, err := h.ln.DialWithLocalAddr(local)
	if err != nil {
		h.Fatalf("dial: %v", err)
	}
	h.Cleanup(func() { _ = c.Close() })
	// So that a lost answer fails the test instead of hanging it.
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		h.Fatal(err)
	}
	return c
}

// do makes one exchange on a connection of its own and checks what every response has.
func (h *harness) do(method, target string, headers ...string) reply {
	h.Helper()
	return h.doFrom("", method, target, headers...)
}

func (h *harness) get(target string, headers ...string) reply {
	h.Helper()
	return h.do("GET", target, headers...)
}

func (h *harness) doFrom(from, method, target string, headers ...string) reply {
	h.Helper()
	c := h.dial(from)
	head := method + " " + target + " HTTP/1.1\r\nHost: ledger\r\n"
	for _, line := range headers {
		head += line + "\r\n"
	}
	if _, err := io.WriteString(c, head+"\r\n"); err != nil {
		h.Fatalf("%s %s: write: %v", method, target, err)
	}
	r := readReply(h.T, bufio.NewReader(c), method)
	checkEvery(h.T, method+" "+target, r)
	checkDocument(h.T, method, target, r)
	return r
}

// readReply reads one response.
func readReply(t *testing.T, from *bufio.Reader, method string) reply {
	t.Helper()
	r, err := http.ReadResponse(from, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s: cannot read the response: %v", method, err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatalf("%s: cannot read the body: %v", method, err)
	}
	return reply{status: r.StatusCode, header: r.Header, body: string(body)}
}

// checkEvery checks what every response carries.
func checkEvery(t *testing.T, what string, r reply) {
	t.Helper()
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": "*",
		"X-Content-Type-Options":      "nosniff",
		"Content-Security-Policy":     "default-src 'none'",
		"Vary":                        "Accept-Encoding",
		"Server":                      "",
	} {
		if got := r.header.Get(name); got != want {
			t.Errorf("%s: %s = %q, want %q", what, name, got, want)
		}
	}
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		if _, err := strconv.ParseUint(r.header.Get(name), 10, 64); err != nil {
			t.Errorf("%s: %s = %q, want a number", what, name, r.header.Get(name))
		}
	}
	if r.status >= 400 && !strings.HasPrefix(r.header.Get("Content-Type"), "application/json") {
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
	if r.header.Get("Content-Encoding") != "" || method == "HEAD" {
		return // the same body was or will be checked plain
	}
	path, template := documentPath(target), ""
	for candidate := range document.Paths.Map() {
		if samePath(path, candidate) && (template == "" || !strings.Contains(candidate, "{")) {
			template = candidate
		}
	}
	item := document.Paths.Value(template)
	if item == nil || item.GetOperation(method) == nil {
		checkError(t, method+" "+target, r)
		return
	}
	request, err := http.NewRequest(method, "/api"+template, nil)
	if err != nil {
		t.Fatal(err)
	}
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

// documentPath returns the path of a target below the base address, decoded; of targets
// that are no URI, something no document describes.
func documentPath(target string) string {
	target, _, _ = strings.Cut(target, "?")
	if rest, ok := strings.CutPrefix(target, "http://"); ok {
		_, target, _ = strings.Cut(rest, "/")
		target = "/" + target
	}
	path, err := url.PathUnescape(target)
	path, ok := strings.CutPrefix(path, "/api/")
	if err != nil || !ok {
		return ""
	}
	return "/" + strings.TrimSuffix(path, "/")
}

// checkError checks an answer the document has no operation for: an error record.
func checkError(t *testing.T, what string, r reply) {
	t.Helper()
	var value any
	if err := jsonDecode(r.body, &value); err != nil {
		t.Errorf("%s: status %d: body %q is no JSON: %v", what, r.status, r.body, err)
		return
	}
	if err := document.Components.Schemas["Error"].Value.VisitJSON(value); err != nil {
		t.Errorf("%s: status %d: body %q is no error record: %v", what, r.status, r.body, err)
	}
}

func samePath(path, template string) bool {
	have, want := strings.Split(path, "/"), strings.Split(template, "/")
	if len(have) != len(want) {
		return false
	}
	for i := range have {
		if have[i] != want[i] && !strings.HasPrefix(want[i], "{") {
			return false
		}
	}
	return true
}

// golden compares text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, []byte(got)) {
		t.Errorf("%s:\n got %s\nwant %s", name, got, want)
	}
}

// errorBody is the body of an error.
func errorBody(status int, details string) string {
	return fmt.Sprintf(`{"error":%q,"details":%q}`, errorText(status), details)
}
