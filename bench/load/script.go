package load

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
)

// Script is requests in the order in which they are sent, so that sending costs neither choice nor
// encoding. It begins again at its end.
type Script [][]byte

// NewScript writes so many requests: write returns the one of an index.
func NewScript(requests int, write func(request int) []byte) Script {
	s := make(Script, requests)
	for i := range s {
		s[i] = write(i)
	}
	return s
}

// common are the fields that common clients send besides Host, as python-requests writes them.
var common = http.Header{"User-Agent": {"python-requests/2.32.3"}, "Accept-Encoding": {"gzip, deflate"}, "Accept": {"*/*"}, "Connection": {"keep-alive"}}

// Get returns a request for a path, with the five fields that common clients send, and others, which take their places.
func Get(host, path string, others http.Header) []byte { return encode("GET", host, path, others, "") }

// Post returns a request with a body in JSON.
func Post(host, path string, others http.Header, body string) []byte {
	described := http.Header{"Content-Type": {"application/json"}}
	maps.Copy(described, others)
	return encode("POST", host, path, described, body)
}

// encode returns a request as it is sent. The path is one as it stands in a request.
func encode(method, host, path string, others http.Header, body string) []byte {
	r := http.Request{Method: method, Host: host, Header: maps.Clone(common), ContentLength: int64(len(body))}
	maps.Copy(r.Header, others)
	if body != "" {
		r.Body = io.NopCloser(strings.NewReader(body))
	}
	if named := others.Get("Host"); named != "" {
		r.Host = named
	}
	u, err := url.ParseRequestURI(path)
	if r.URL = u; err == nil {
		var b bytes.Buffer
		if err = r.Write(&b); err == nil {
			return b.Bytes()
		}
	}
	panic(err) // whoever writes a script has checked what it is made of
}
