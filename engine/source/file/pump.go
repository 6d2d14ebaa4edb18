package file

import (
	"context"
	"io"

	"ledgerd/engine/source/unpack"
)

// contextReader reads until its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// pump reads a pipe or standard input, where a Read may wait for ever, in a goroutine of
// its own. So its reader can leave when ctx ends. The goroutine ends then too, unless it is
// inside the system's read, which nothing can interrupt: that one ends with the
// writer's next byte, or with the process.
type pump struct {
	ctx    context.Context
	chunks chan chunk
	rest   []byte
	err    error
}

// chunk is what one Read returned.
type chunk struct {
	bytes []byte
	err   error
}

// newPump starts reading what open returns. Opening may wait too.
func newPump(ctx context.Context, open func() (io.ReadCloser, error)) *pump {
	p := &pump{ctx: ctx, chunks: make(chan chunk)}
	go p.run(open)
	return p
}

func (p *pump) run(open func() (io.ReadCloser, error)) {
	r, err := open()
	if err != nil {
		p.send(chunk{err: unpack.Reason(err)})
		return
	}
	defer r.Close()
	// Two buffers are enough: the reader asks for a chunk only when it is through with
	// the one before.
	var buffers [2][]byte
	for i := range buffers {
		buffers[i] = make([]byte, readAheadBytes)
	}
	for i := 0; ; i++ {
		b := buffers[i%len(buffers)]
		n, err := r.Read(b)
		if !p.send(chunk{b[:n], err}) || err != nil {
			return
		}
	}
}

func (p *pump) send(c chunk) bool {
	select {
	case p.chunks <- c:
		return true
	case <-p.ctx.Done():
		return false
	}
}

// Read returns the next bytes, or the error of the context once it ends.
func (p *pump) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		if p.err != nil {
			return 0, p.err
		}
		select {
		case c := <-p.chunks:
			p.rest, p.err = c.bytes, c.err
		case <-p.ctx.Done():
			return 0, p.ctx.Err()
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
