package bench

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// answerFrame is where an answer ends. head is 0 while its head is not there whole.
type answerFrame struct {
	head, body int  // bytes
	status     int  // of HTTP
	last       bool // the server closes the connection behind it
}

// framing finds the answer that bytes begin with.
type framing func(b []byte) (answerFrame, error)

// maxAnswerHeadBytes is more than any server here says before a body.
const maxAnswerHeadBytes = 16 << 10

var (
	headEnd      = []byte("\r\n\r\n")
	lineEnd      = []byte("\r\n")
	versionBytes = []byte("HTTP/1.")
	lengthField  = []byte("\r\nContent-Length: ")
	closeField   = []byte("\r\nConnection: close")
)

var (
	errAnswerHead    = errors.New("the answer is not HTTP/1.1")
	errAnswerUnsized = errors.New("the answer states no length")
)

// frameHTTP reads of a head what it must: the status and the length, both found without
// looking at the fields between them.
func frameHTTP(b []byte) (f answerFrame, err error) {
	end := bytes.Index(b, headEnd)
	if end < 0 {
		if len(b) > maxAnswerHeadBytes {
			return f, errAnswerHead
		}
		return f, nil
	}
	head := b[:end+len(lineEnd)]
	if !bytes.HasPrefix(head, versionBytes) || len(head) < 12 {
		return f, errAnswerHead
	}
	if f.status, err = decimal(head[9:12]); err != nil {
		return f, errAnswerHead
	}
	f.head = end + len(headEnd)
	if f.status == 204 || f.status == 304 {
		return f, nil
	}
	value := fieldValue(head, lengthField)
	if value == nil {
		return f, errAnswerUnsized
	}
	if f.body, err = decimal(value); err != nil {
		return f, errAnswerHead
	}
	return f, nil
}

// frameLast is frameHTTP that also sees whether the server closes the connection. That takes half
// as much time again, so servers of our own, which do not, are spared it where speed is measured.
func frameLast(b []byte) (f answerFrame, err error) {
	f, err = frameHTTP(b)
	f.last = f.head > 0 && bytes.Contains(b[:f.head], closeField)
	return f, err
}

// fieldValue returns the value of a field, nil without it. The name comes with what stands
// around it, as servers usually write it.
func fieldValue(head, name []byte) []byte {
	at := bytes.Index(head, name)
	if at >= 0 {
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

// frameRedis finds a bulk string, which is the answer to GET; there being none counts as 404.
func frameRedis(b []byte) (f answerFrame, err error) {
	end := bytes.Index(b, lineEnd)
	switch {
	case end < 0:
		return f, nil
	case b[0] != '$':
		return f, fmt.Errorf("not an answer to GET: %q", b[:end])
	case b[1] == '-':
		return answerFrame{head: end + len(lineEnd), status: 404}, nil
	}
	size, err := decimal(b[1:end])
	return answerFrame{head: end + len(lineEnd), body: size + len(lineEnd), status: 200}, err
}
