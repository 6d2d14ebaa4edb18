package ops

import (
	"io"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/httpd/wire"
)

// backupPatience is how long the receiver of a backup may take for each piece of it.
const backupPatience = 30 * time.Second

// backup answers with a backup, one at a time: each holds files open, and reads the disk as fast as it can.
func (s *Server) backup(ctx *fasthttp.RequestCtx, c *wire.Conn) {
	if s.backingUp.Swap(true) {
		writeError(ctx, fasthttp.StatusServiceUnavailable, "another backup is under way")
		return
	}
	sends := false
	defer func() {
		if !sends {
			s.backingUp.Store(false)
		}
	}()
	content, bytes, err := s.config.Backup()
	if err != nil {
		writeError(ctx, fasthttp.StatusServiceUnavailable, err.Error())
		return
	}
	sends = true
	ctx.SetContentType("application/x-tar")
	ctx.Response.ImmediateHeaderFlush = true // its length is known long before its end
	ctx.SetBodyStream(&backupBody{content, c, s}, int(bytes))
}

// backupBody is read, and closed, by the goroutine that writes to the connection. A read that fails ends the connection before
// the length that was announced.
type backupBody struct {
	content io.ReadCloser
	conn    *wire.Conn
	server  *Server
}

func (b *backupBody) Read(p []byte) (int, error) {
	if err := b.conn.SetWriteDeadline(time.Now().Add(backupPatience)); err != nil {
		return 0, err
	}
	return b.content.Read(p)
}

func (b *backupBody) Close() error {
	b.server.backingUp.Store(false)
	return b.content.Close()
}
