package httpd

import "bytes"

// The sizes a request may have. The request line is counted without its line end, the
// block of header fields with the line end of each but without the empty line after it.
const (
	maxRequestLineBytes = 8 << 10
	maxHeaderBlockBytes = 8 << 10
	maxBodyBytes        = 64 << 10
	// maxHeadBytes is the longest head that can be accepted: an ignored empty line, the
	// request line, the header fields, the closing empty line.
	maxHeadBytes = 2 + maxRequestLineBytes + 2 + maxHeaderBlockBytes + 2
)

// headVerdict is what the bytes of a request head turned out to be.
type headVerdict uint8

const (
	headIncomplete headVerdict = iota // nothing wrong so far, but it does not end yet
	headAccepted
	headMalformed
	headLineTooLong
	headFieldsTooLarge
	headBodyTooLarge
	headTimeout // never from scanHead: the rest did not come in time
)

// refused reports whether the head must be answered with an error.
func (v headVerdict) refused() bool { return v > headAccepted }

// head is an accepted request head, or several without a body in between.
type head struct {
	bytes int  // the length, up to and including the empty line
	body  int  // the length of the body that follows
	last  bool // it asks for an upgrade: what follows may not be HTTP
	plain bool // of HTTP/1.1, and nothing but its request line says how it is to be answered
}

// scanBatch checks the heads at the start of b that can be handed out together: whole
// accepted ones, of which none but the last has a body or asks for an upgrade. It stops
// before one that asks to wait, which must not hold up the answers of those before it. The
// verdict is about the first head; what it is about the others is seen when they are first.
func scanBatch(b []byte) (batch head, verdict headVerdict) {
	batch, verdict = scanHead(b)
	for verdict == headAccepted && batch.body == 0 && !batch.last && batch.bytes < len(b) {
		h, v := scanHead(b[batch.bytes:])
		if v != headAccepted || bytes.Contains(b[batch.bytes:batch.bytes+h.bytes], waitParam) {
			break
		}
		batch = head{bytes: batch.bytes + h.bytes, body: h.body, last: h.last}
	}
	return batch, verdict
}

// waitParam stands in the head of every question that waits, unless it is escaped.
var waitParam = []byte("wait_ms=")

// scanHead checks the request head at the start of b more strictly than RFC 9112 asks a
// recipient to, because a proxy in front may read lenient forms differently: lines end in
// CRLF and nothing else, no folding, one Host, at most one Content-Length of plain digits,
// no Transfer-Encoding whatsoever, HTTP/1.0 or HTTP/1.1. One empty line before the request
// line is passed over, as section 2.2 recommends.
//
// A fault is reported as soon as the line it stands in is there, a length as soon as it is
// exceeded. Rescanning after every read is quadratic in theory and bounded by maxHeadBytes.
func scanHead(b []byte) (head, headVerdict) {
	at := 0
	if len(b) > 0 && b[0] == '\r' {
		if len(b) == 1 {
			return head{}, headIncomplete
		}
		if b[1] != '\n' {
			return head{}, headMalformed
		}
		at = 2
	}
	line, verdict := nextLine(b[at:])
	if len(line) > maxRequestLineBytes {
		return head{}, headLineTooLong
	}
	if verdict != headAccepted {
		return head{}, verdict
	}
	http11, ok := checkRequestLine(line)
	if !ok {
		return head{}, headMalformed
	}
	at += len(line) + 2

	var f fields
	for start := at; ; {
		line, verdict := nextLine(b[at:])
		if at+len(line)-start > maxHeaderBlockBytes {
			return head{}, headFieldsTooLarge
		}
		if verdict != headAccepted {
			return head{}, verdict
		}
		at += len(line) + 2
		if len(line) == 0 {
			break
		}
		if at-start > maxHeaderBlockBytes {
			return head{}, headFieldsTooLarge
		}
		if !f.check(line) {
			return head{}, headMalformed
		}
	}
	switch {
	case http11 && f.hosts != 1:
		return head{}, headMalformed
	case f.length > maxBodyBytes:
		return head{}, headBodyTooLarge
	}
	plain := http11 && f.hostPlain && !f.telling && !f.upgrade && f.lengths == 0
	return head{bytes: at, body: f.length, last: f.upgrade, plain: plain}, headAccepted
}

// nextLine returns the line at the start of b without its CRLF. Without a line end it
// returns all of b and headIncomplete; a line end other than CRLF is malformed.
func nextLine(b []byte) ([]byte, headVerdict) {
	n := bytes.IndexByte(b, '\n')
	switch {
	case n < 0:
		return bytes.TrimSuffix(b, []byte{'\r'}), headIncomplete
	case n == 0 || b[n-1] != '\r':
		return b[:n], headMalformed
	}
	return b[:n-1], headAccepted
}

// checkRequestLine checks "METHOD SP TARGET SP HTTP/1.x" and reports whether x is 1.
func checkRequestLine(line []byte) (http11, ok bool) {
	method, rest, ok := bytes.Cut(line, []byte{' '})
	if !ok || !isToken(method) {
		return false, false
	}
	target, version, ok := bytes.Cut(rest, []byte{' '})
	if !ok || !isTarget(target) {
		return false, false
	}
	switch string(version) {
	case "HTTP/1.1":
		return true, true
	case "HTTP/1.0":
		return false, true
	}
	return false, false
}

// isTarget reports whether t is a path, or the absolute form that clients of a proxy
// send, of visible ASCII and without a fragment.
func isTarget(t []byte) bool {
	if !bytes.HasPrefix(t, []byte("/")) && !bytes.HasPrefix(t, []byte("http://")) && !bytes.HasPrefix(t, []byte("https://")) {
		return false
	}
	for _, c := range t {
		if c <= ' ' || c >= 0x7f || c == '#' {
			return false
		}
	}
	return true
}

// fields gathers what the framing of a request depends on.
type fields struct {
	hosts   int
	lengths int // how many Content-Length fields
	length  int // the body's length, maxBodyBytes+1 for anything longer
	upgrade bool

	hostPlain bool // the host is one that nobody has to look at again
	telling   bool // there is a field that may change the answer, see head.plain
}

// check checks one header field and reports whether the request may go on.
func (f *fields) check(line []byte) bool {
	name, value, ok := bytes.Cut(line, []byte{':'})
	if !ok || !isToken(name) {
		return false
	}
	for _, c := range value {
		if (c < ' ' && c != '\t') || c == 0x7f {
			return false
		}
	}
	switch len(name) {
	case len("host"):
		if equalFold(name, "host") {
			f.hosts++
			f.hostPlain = isPlainHost(bytes.Trim(value, " \t"))
			return f.hosts == 1
		}
	case len("expect"):
		f.telling = f.telling || equalFold(name, "expect")
	case len("upgrade"): // and trailer
		f.upgrade = f.upgrade || equalFold(name, "upgrade")
		f.telling = f.telling || equalFold(name, "trailer")
	case len("connection"):
		f.telling = f.telling || equalFold(name, "connection")
	case len("if-none-match"):
		f.telling = f.telling || equalFold(name, "if-none-match")
	case len("content-length"):
		if equalFold(name, "content-length") {
			f.lengths++
			f.length, ok = parseLength(bytes.Trim(value, " \t"))
			return ok && f.lengths == 1
		}
	case len("transfer-encoding"):
		return !equalFold(name, "transfer-encoding")
	}
	return true
}

// isPlainHost reports whether a host is a name or an IPv4 address, with a port or without.
func isPlainHost(host []byte) bool {
	host, port, _ := bytes.Cut(host, []byte{':'})
	for _, c := range port {
		if c < '0' || c > '9' {
			return false
		}
	}
	for _, c := range host {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '.' && c != '-' {
			return false
		}
	}
	return len(host) > 0
}

// parseLength reads a Content-Length of digits only. Anything above maxBodyBytes is
// maxBodyBytes+1, however long it is written.
func parseLength(digits []byte) (int, bool) {
	n := 0
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = min(n*10+int(c-'0'), maxBodyBytes+1)
	}
	return n, len(digits) > 0
}

// equalFold reports whether b is the lower-case word s in any case.
func equalFold(b []byte, s string) bool {
	if len(b) != len(s) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != s[i] {
			return false
		}
	}
	return true
}

// isToken reports whether b is a token of RFC 9110: a method or a field name.
func isToken(b []byte) bool {
	for _, c := range b {
		if !tokenBytes[c] {
			return false
		}
	}
	return len(b) > 0
}

var tokenBytes = func() (t [256]bool) {
	for _, c := range "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" {
		t[c] = true
	}
	return t
}()
