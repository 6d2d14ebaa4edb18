package httpd

import (
	"bytes"
	"slices"
)

// maxLongBytes is the largest buffer of a long body that is used again: lists of the usual
// length have room in it. The pool lets go of those that nobody asks for.
const maxLongBytes = 1 << 20

// longBody is a body that is too long to be copied into the response, which has it written from
// where it is and then closes it. Without that, making room for lists costs about as
// much as their text.
type longBody struct {
	bytes.Reader
	server *Server
	buffer []byte
}

// lend returns a response's body.
func (s *Server) lend(body []byte) *longBody {
	b := &longBody{server: s, buffer: body}
	b.Reset(body)
	return b
}

// Close lets the buffer be used again.
func (b *longBody) Close() error {
	if c := cap(b.buffer); c > maxKeptBytes && c <= maxLongBytes {
		b.server.long.Put(b)
	}
	return nil
}

// expect makes room in the body for a list whose records take about so many bytes.
func (r *request) expect(n int) {
	const besides = 512 // more than a list takes besides its records
	n += len(r.body) + besides
	if n <= maxKeptBytes {
		r.body = slices.Grow(r.body, n)
		return
	}
	buffer := []byte(nil)
	if b, ok := r.server.long.Get().(*longBody); ok && cap(b.buffer) >= n {
		buffer = b.buffer[:0]
	} else {
		buffer = make([]byte, 0, n)
	}
	r.body = append(buffer, r.body...)
}
