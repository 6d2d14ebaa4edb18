package load

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
)

// Frame says where a response ends. Head is 0 while its head is not there whole.
type Frame struct {
	Head, Body int  // bytes
	Status     int  // of HTTP
	Last       bool // the server closes the connection after it
}

// Framing finds the response that bytes begin with.
type Framing func(b []byte) (Frame, error)

// maxHeadBytes is the most that may come before a body.
const maxHeadBytes = 16 << 10

var (
	headEnd     = []byte("\r\n\r\n")
	lineEnd     = []byte("\r\n")
	httpVersion = []byte("HTTP/1.")
	lengthField = []byte("\r\nContent-Length: ")
	closeField  = []byte("\r\nConnection: close")
)

var (
	errNotHTTP  = errors.New("the response is not HTTP/1.1")
	errNoLength = errors.New("the response states no length")
	errNotRedis = errors.New("the response is no bulk string of Redis")
)

// FrameHTTP reads of a head what it must: the status, the length and whether the connection is closed,
// all found without looking at the fields between them.
func FrameHTTP(b []byte) (f Frame, err error) {
	end := bytes.Index(b, headEnd)
	if end < 0 {
		if len(b) > maxHeadBytes {
			return f, errNotHTTP
		}
		return f, nil
	}
	head := b[:end+len(lineEnd)]
	if !bytes.HasPrefix(head, httpVersion) || len(head) < 12 {
		return f, errNotHTTP
	}
	if f.Status, err = decimal(head[9:12]); err != nil {
		return f, errNotHTTP
	}
	f.Last = bytes.Contains(head, closeField)
	if f.Status == http.StatusNoContent || f.Status == http.StatusNotModified {
		f.Head = end + len(headEnd)
		return f, nil
	}
	value := Field(head, lengthField)
	if value == nil {
		return f, errNoLength
	}
	if f.Body, err = decimal(value); err != nil {
		return f, errNotHTTP
	}
	f.Head = end + len(headEnd)
	return f, nil
}

// Field returns the value of a field of a head, nil without it. The name comes with what stands
// around it as servers usually write it: "\r\nName: ".
func Field(head, name []byte) []byte {
	if at := bytes.Index(head, name); at >= 0 {
		value := head[at+len(name):]
		return value[:bytes.Index(value, lineEnd)]
	}
	want := name[len(lineEnd) : len(name)-len(": ")]
	for line := range bytes.SplitSeq(head, lineEnd) {
		if field, value, ok := bytes.Cut(line, []byte(":")); ok && bytes.EqualFold(field, want) {
			return bytes.TrimSpace(value)
		}
	}
	return nil
}

// decimal reads a number of plain digits, at most nine.
func decimal(b []byte) (n int, err error) {
	if len(b) == 0 || len(b) > 9 {
		return 0, strconv.ErrSyntax
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, strconv.ErrSyntax
		}
		n = 10*n + int(c-'0')
	}
	return n, nil
}

// FrameRedis finds a bulk string, which is the reply to GET; nil counts as 404.
func FrameRedis(b []byte) (f Frame, err error) {
	end := bytes.Index(b, lineEnd)
	switch {
	case end < 0:
		return f, nil
	case end < 2 || b[0] != '$':
		return f, errNotRedis
	case b[1] == '-':
		return Frame{Head: end + len(lineEnd), Status: http.StatusNotFound}, nil
	}
	size, err := decimal(b[1:end])
	if err != nil {
		return f, errNotRedis
	}
	return Frame{Head: end + len(lineEnd), Body: size + len(lineEnd), Status: http.StatusOK}, nil
}
