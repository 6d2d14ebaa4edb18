package ops

import (
	"errors"
	"io"
	"io/fs"

	"github.com/valyala/fasthttp"
)

// File is a file of a snapshot.
type File interface {
	io.ReaderAt
	io.Closer
	Size() (int64, error)
}

// snapshotsPath is below which another node of the cluster asks for files of snapshots.
const snapshotsPath = "/snapshots/"

// snapshot answers with a file of a snapshot, or a range of it.
func (s *Server) snapshot(ctx *fasthttp.RequestCtx, name string) error {
	file, err := s.config.Snapshot(name)
	if errors.Is(err, fs.ErrNotExist) {
		writeError(ctx, fasthttp.StatusNotFound, "no snapshot has a file of this name")
		return nil
	}
	if err != nil {
		return err
	}
	size, err := file.Size()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	first, last := 0, int(size)-1
	if asked := ctx.Request.Header.Peek(fasthttp.HeaderRange); len(asked) > 0 {
		if first, last, err = fasthttp.ParseByteRange(asked, int(size)); err != nil {
			_ = file.Close() // it was only read
			writeError(ctx, fasthttp.StatusRequestedRangeNotSatisfiable, "the file has no such range of bytes")
			return nil
		}
		ctx.SetStatusCode(fasthttp.StatusPartialContent)
		ctx.Response.Header.SetContentRange(first, last, int(size))
	}
	ctx.SetContentType("application/octet-stream")
	n := last - first + 1
	send(ctx, struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(file, int64(first), int64(n)), file}, n)
	return nil
}
