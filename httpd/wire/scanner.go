package wire

import "bytes"

// methodHEAD is how a request begins whose answer has no body.
const methodHEAD = "HEAD "

// scanner notes of the bytes of a connection what fasthttp does not tell after it gave up a request. It belongs to the goroutine that reads and writes.
type scanner struct {
	heard     bool // the peer has sent anything at all
	timedOut  bool // no more bytes came in time
	bareLFs   int  // line feeds without a carriage return that no body explains yet
	last      byte // that was read
	lineBytes int  // read since the last line feed

	// The present request: the first that is not finished.

	begins []byte // its first bytes, as many as methodHEAD has
	before int    // how many bytes of it, and of empty lines in front, came in earlier reads
	chunk  []byte // those, and what is behind them, of the last read; it is looked at until the next
}

// note looks at bytes that were read.
func (s *scanner) note(p []byte) {
	s.heard = true
	if end := bytes.LastIndexByte(p, '\n'); end >= 0 {
		s.lineBytes = len(p) - end - 1
	} else {
		s.lineBytes += len(p)
	}
	s.bareLFs += bareLFs(p, s.last)
	s.last = p[len(p)-1]
	s.before += len(s.chunk)
	s.chunk = p
	s.begin()
}

// begin looks how the present request begins, as far as it has come.
func (s *scanner) begin() {
	text := s.chunk
	if len(s.begins) == 0 { // a parser skips empty lines
		text = bytes.TrimLeft(text, "\r\n")
		s.before -= len(s.chunk) - len(text)
	}
	s.begins = append(s.begins, text[:min(len(text), len(methodHEAD)-len(s.begins))]...)
}

// finish says how long the present request is. What is behind it belongs to the next one.
func (s *scanner) finish(requestBytes int) {
	s.chunk = s.chunk[min(max(requestBytes-s.before, 0), len(s.chunk)):]
	s.before, s.begins = 0, s.begins[:0]
	s.begin()
}

// isHEAD reports whether the present request is a HEAD.
func (s *scanner) isHEAD() bool { return string(s.begins) == methodHEAD }

// explains reports whether the bare line feeds read so far are all in the body of the present
// request. One elsewhere may be the end of a request line, which fasthttp takes for a CRLF; where
// several requests came together it may also be a later one's, which then is refused with this one.
func (s *scanner) explains(body []byte) bool {
	if s.bareLFs > 0 {
		s.bareLFs -= bareLFs(body, '\n')
	}
	return s.bareLFs <= 0
}

// bareLFs counts the line feeds that no carriage return precedes.
func bareLFs(b []byte, before byte) (n int) {
	for {
		i := bytes.IndexByte(b, '\n')
		switch {
		case i < 0:
			return n
		case i > 0:
			before = b[i-1]
		}
		if before != '\r' {
			n++
		}
		before, b = '\n', b[i+1:]
	}
}
