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
	if end < 0 && len(b) <= maxHeadBytes {
		return f, nil
	}
	if end < 12 || !bytes.HasPrefix(b, httpVersion) {
		return f, errNotHTTP
	}
	head := b[:end+len(lineEnd)]
	if f.Status, err = decimal(head[9:12]); err != nil {
		return f, errNotHTTP
	}
	if f.Status != http.StatusNoContent && f.Status != http.StatusNotModified {
		value := Field(head, "Content-Length")
		if value == nil {
			return f, errNoLength
		}
		if f.Body, err = decimal(value); err != nil {
			return f, errNotHTTP
		}
	}
	f.Head, f.Last = end+len(headEnd), bytes.Contains(head, closeField)
	return f, nil
}

// Field returns the value of a field of a head, nil without it. It is found fastest when the name is spelled as the server does.
func Field(head []byte, name string) []byte {
	if _, value, found := bytes.Cut(head, []byte("\r\n"+name+": ")); found {
		return value[:bytes.Index(value, lineEnd)]
	}
	for line := range bytes.SplitSeq(head, lineEnd) {
		if field, value, found := bytes.Cut(line, []byte(":")); found && bytes.EqualFold(field, []byte(name)) {
			return bytes.TrimSpace(value)
		}
	}
	return nil
}

// decimal reads a number of plain digits.
func decimal(b []byte) (int, error) {
	n, err := strconv.ParseUint(string(b), 10, 31)
	return int(n), err
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
