package load

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
)

// Script is requests in the order in which they are sent, so that sending costs neither choice nor
// encoding. It begins again at its end.
type Script [][]byte

// NewScript writes so many requests: write appends the one of an index.
func NewScript(requests int, write func(dst []byte, request int) []byte) Script {
	s := make(Script, requests)
	for i := range s {
		s[i] = write(make([]byte, 0, 256), i)
	}
	return s
}

// common are the fields that common clients send besides Host, as python-requests writes them.
var common = [...][2]string{{"User-Agent", "python-requests/2.32.3"}, {"Accept-Encoding", "gzip, deflate"}, {"Accept", "*/*"}, {"Connection", "keep-alive"}}

// AppendGet appends a request for a path, with the five fields that common clients send, and others, which take their places.
func AppendGet(dst []byte, host, path string, others http.Header) []byte {
	return appendHead(dst, "GET", host, path, others)
}

// AppendPost appends a request with a body in JSON.
func AppendPost(dst []byte, host, path string, others http.Header, body string) []byte {
	described := http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(body))}}
	maps.Copy(described, others)
	return append(appendHead(dst, "POST", host, path, described), body...)
}

func appendHead(dst []byte, method, host, path string, others http.Header) []byte {
	if named := others.Get("Host"); named != "" {
		host = named
	}
	line := func(words ...string) {
		for _, word := range words {
			dst = append(dst, word...)
		}
		dst = append(dst, "\r\n"...)
	}
	line(method, " ", path, " HTTP/1.1")
	line("Host: ", host)
	for _, field := range common {
		if len(others[field[0]]) == 0 {
			line(field[0], ": ", field[1])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		for _, value := range others[name] {
			if name != "Host" {
				line(name, ": ", value)
			}
		}
	}
	line()
	return dst
}
