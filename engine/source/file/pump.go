package file

import (
	"context"
	"io"

	"ledgerd/engine/source/unpack"
)

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
