package wire

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// The sizes a request may have. The request line is counted without its line end, the
// block of header fields with the line end of each but without the empty line after it.
const (
	maxRequestLineBytes = 8 << 10
	maxHeaderBlockBytes = 8 << 10
	maxBodyBytes        = 64 << 10
)

// Fault is an error with the status it is answered with. Its text is for the client and repeats
// nothing that was received.
type Fault struct {
	Status int
	Text   string
}

// Error returns the text.
func (f *Fault) Error() string { return f.Text }

// The faults a request may have before anybody asks what it wants.
var (
	ErrMalformed      = &Fault{fasthttp.StatusBadRequest, "the request is not well-formed HTTP/1.1 or HTTP/1.0, or its length is stated in an unsupported way"}
	ErrLineTooLong    = &Fault{fasthttp.StatusRequestURITooLong, "the request line is longer than 8 KiB"}
	ErrFieldsTooLarge = &Fault{fasthttp.StatusRequestHeaderFieldsTooLarge, "the header fields are longer than 8 KiB"}
	ErrBodyTooLarge   = &Fault{fasthttp.StatusRequestEntityTooLarge, "the body is longer than 64 KiB"}
	ErrPlain          = &Fault{fasthttp.StatusBadRequest, "this port speaks HTTPS; the request was sent without TLS"}
	ErrTimeout        = &Fault{fasthttp.StatusRequestTimeout, "the request did not arrive completely in time"}
)

// checkHead refuses what fasthttp's parser lets pass and RFC 9112 forbids or leaves open to several
// readings: versions other than 1.0 and 1.1, targets other than paths, line ends other than CRLF,
// folded fields, names with a space, Transfer-Encoding of any kind, and heads that are too long. The parser itself
// refuses a missing or second Host, names that are no tokens for another reason, control bytes, and a
// Content-Length that is repeated or no plain number. closes reports whether the client
// wants the connection to end after the answer: any of its Connection lines may say so.
func checkHead(h *fasthttp.RequestHeader) (closes bool, fault *Fault) {
	uri, rest := h.RequestURI(), h.RawHeaders()
	switch {
	case len(h.Method())+len(" ")+len(uri)+len(" ")+len(h.Protocol()) > maxRequestLineBytes:
		return false, ErrLineTooLong
	case len(rest)-len("\r\n") > maxHeaderBlockBytes:
		return false, ErrFieldsTooLarge
	case !isTarget(uri) || !h.IsHTTP11() && string(h.Protocol()) != "HTTP/1.0":
		return false, ErrMalformed
	}
	for len(rest) > 0 {
		end := bytes.IndexByte(rest, '\n')
		if end < 1 || rest[end-1] != '\r' || rest[0] == ' ' || rest[0] == '\t' {
			return false, ErrMalformed
		}
		line := rest[:end-1]
		rest = rest[end+1:]
		switch name, value, _ := bytes.Cut(line, []byte{':'}); {
		case bytes.IndexByte(name, ' ') >= 0:
			return false, ErrMalformed
		case len(name) == len("Transfer-Encoding") && bytes.EqualFold(name, []byte("Transfer-Encoding")): // lengths alone tell most names apart
			return false, ErrMalformed
		case len(name) == len("Connection") && bytes.EqualFold(name, []byte("Connection")):
			closes = closes || HasWord(value, "close")
		}
	}
	return closes, nil
}

// headBytes returns how long a request's head was that checkHead accepts.
func headBytes(h *fasthttp.RequestHeader) int {
	return len(h.Method()) + len(" ") + len(h.RequestURI()) + len(" ") + len(h.Protocol()) + len("\r\n") + len(h.RawHeaders())
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

// HasWord reports whether a comma-separated field has a word, in upper or lower case.
func HasWord(field []byte, word string) bool {
	for element := range bytes.SplitSeq(field, []byte{','}) {
		if bytes.EqualFold(bytes.Trim(element, " \t"), []byte(word)) {
			return true
		}
	}
	return false
}

// prepare is called between a head and its body. A chunked body is not read, since its head is
// about to be refused; a client of HTTP/1.0 cannot expect 100 Continue (RFC 9110, section 10.1.1),
// and one whose body is too long is not to send it.
func prepare(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	if h.ContentLength() == -1 {
		h.SetContentLength(0)
	}
	if string(h.Protocol()) == "HTTP/1.0" || h.ContentLength() > maxBodyBytes {
		h.Del(fasthttp.HeaderExpect)
	}
	return fasthttp.RequestConfig{}
}
