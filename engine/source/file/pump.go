package file

import (
	"context"
	"io"
	"sync/atomic"

	"ledgerd/engine/source/unpack"
)

// contextReader reads until its context ends, and counts what it reads.
type contextReader struct {
	ctx  context.Context
	r    io.Reader
	read *atomic.Int64
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// pump reads what open returns, a pipe or standard input, in a goroutine of its own: opening it and reading from it may
// wait for ever. So its reader can leave when ctx ends. The goroutine ends then too, unless it is inside the
// system's read, which nothing can interrupt: that one ends with the writer's next byte, or with the process.
func pump(ctx context.Context, open func() (io.ReadCloser, error)) io.Reader {
	out, in := io.Pipe()
	context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
	go func() {
		r, err := open()
		if err != nil {
			in.CloseWithError(unpack.Reason(err))
			return
		}
		defer r.Close()
		_, err = io.Copy(in, r)
		in.CloseWithError(err)
	}()
	return out
}
