package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// api asks one node, over kept connections, and holds every answer against the document
// that the node serves. Many goroutines may use it.
type api struct {
	testing.TB
	base     string
	client   *http.Client
	document *openapi3.T
}

// answer is a response as it was read.
type answer struct {
	status int
	header http.Header
	body   string
}

// documents are the served documents by their text: they are all the same one, and reading
// it takes longer than most tests.
var documents sync.Map

// dial returns the interface of a running node. Its connections end with the test.
func dial(t testing.TB, r *running) *api {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 16, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	a := &api{TB: t, base: r.base, client: &http.Client{Transport: transport}}
	status, text := get(t, r.base+"/openapi.json")
	if status != http.StatusOK {
		t.Fatalf("GET /openapi.json: %d", status)
	}
	if d, ok := documents.Load(string(text)); ok {
		a.document = d.(*openapi3.T)
		return a
	}
	document, err := openapi3.NewLoader().LoadFromData(text)
	if err == nil {
		err = document.Validate(context.Background())
	}
	if err != nil {
		t.Fatalf("the served document is no OpenAPI: %v", err)
	}
	documents.Store(string(text), document)
	a.document = document
	return a
}

// get asks for a path below the base address.
func (a *api) get(path string, headers ...string) answer {
	a.Helper()
	request, err := http.NewRequest(http.MethodGet, a.base+path, nil)
	if err != nil {
		a.Errorf("GET %s: %v", path, err)
		return answer{}
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := a.client.Do(request)
	if err != nil {
		a.Errorf("GET %s: %v", path, err)
		return answer{}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		a.Errorf("GET %s: %v", path, err)
		return answer{}
	}
	r := answer{response.StatusCode, response.Header, string(body)}
	a.check(request, r)
	return r
}

// ok is get for what must be there.
func (a *api) ok(path string, headers ...string) answer {
	a.Helper()
	r := a.get(path, headers...)
	if r.status != http.StatusOK {
		a.Errorf("GET %s: %d %s, want 200", path, r.status, r.body)
	}
	return r
}

// want asks for a path that must answer exactly the JSON of record, byte for byte, and name
// exactly these fields as unknown.
func (a *api) want(path, partial string, record any) {
	a.Helper()
	want, err := json.Marshal(record)
	if err != nil {
		a.Errorf("GET %s: %v", path, err)
		return
	}
	r := a.ok(path)
	if r.body != string(want) {
		a.Errorf("GET %s:\n got %s\nwant %s", path, shorten(r.body), shorten(string(want)))
	}
	if got := r.header.Get("X-Ledger-Partial"); got != partial {
		a.Errorf("GET %s: X-Ledger-Partial %q, want %q", path, got, partial)
	}
}

// wantMissing asks for a path that must be a 404 whose details start as given.
func (a *api) wantMissing(path, details string) {
	a.Helper()
	r := a.get(path)
	var e struct{ Error, Details string }
	if err := json.Unmarshal([]byte(r.body), &e); err != nil || r.status != http.StatusNotFound || !strings.HasPrefix(e.Details, details) {
		a.Errorf("GET %s: %d %s, want 404 and details %q", path, r.status, r.body, details)
	}
}

func shorten(s string) string {
	const most = 1500
	if len(s) > most {
		return fmt.Sprintf("%s… (%d bytes)", s[:most], len(s))
	}
	return s
}

// decode decodes an answer's body.
func decode[T any](a *api, r answer) (v T) {
	a.Helper()
	if err := json.Unmarshal([]byte(r.body), &v); err != nil {
		a.Errorf("%s: %v", shorten(r.body), err)
	}
	return v
}

// pages reads a list page by page, from the one that path names to the last: next is what leads from one to the following,
// as the value of a parameter in the query.
func pages[P any](a *api, path, parameter string, next func(P) *string) (all []P) {
	a.Helper()
	address, err := url.Parse(path)
	for err == nil && len(all) < 10_000 {
		page := decode[P](a, a.ok(address.String()))
		all = append(all, page)
		to := next(page)
		if to == nil {
			return all
		}
		query := address.Query()
		query.Set(parameter, *to)
		address.RawQuery = query.Encode()
	}
	a.Errorf("GET %s: there is no end to its %d pages, or %v", path, len(all), err)
	return all
}

// check holds an answer against the document.
func (a *api) check(request *http.Request, r answer) {
	a.Helper()
	path := strings.TrimPrefix(request.URL.Path, "/api")
	template := ""
	for candidate := range a.document.Paths.Map() {
		if fits(path, candidate) && (template == "" || !strings.Contains(candidate, "{")) {
			template = candidate
		}
	}
	item := a.document.Paths.Value(template)
	if item == nil || item.Get == nil {
		a.Errorf("GET %s: the document has no such path", path)
		return
	}
	err := openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: request,
			Route:   &routers.Route{Spec: a.document, Path: template, PathItem: item, Method: http.MethodGet, Operation: item.Get},
		},
		Status:  r.status,
		Header:  r.header,
		Body:    io.NopCloser(bytes.NewReader([]byte(r.body))),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	})
	if err != nil {
		a.Errorf("GET %s: status %d does not fit the document: %v", request.URL, r.status, shorten(err.Error()))
	}
}

func fits(path, template string) bool {
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
