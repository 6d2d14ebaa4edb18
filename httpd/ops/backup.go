package ops

import (
	"cmp"
	"io"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/httpd/wire"
)

const (
	// backupPatience is how long the receiver of a backup may take for each piece of it, and how far it may fall behind the least rate.
	backupPatience = 30 * time.Second
	// leastBackupRate is how many bytes a second a receiver takes at least: a slower one would keep the others from theirs.
	leastBackupRate = 256 << 10
)

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
	ctx.SetBodyStream(newBackupBody(content, c, s), int(bytes))
}

// backupBody is read, and closed, by the goroutine that writes to the connection. A read that fails ends the connection before
// the length that was announced.
type backupBody struct {
	content io.ReadCloser
	conn    *wire.Conn
	server  *Server
	due     time.Time // when what was read so far has been sent at the least rate, and patience is over
}

func newBackupBody(content io.ReadCloser, c *wire.Conn, s *Server) *backupBody {
	return &backupBody{content, c, s, time.Now().Add(backupPatience)}
}

func (b *backupBody) Read(p []byte) (int, error) {
	n, err := b.content.Read(p)
	b.due = b.due.Add(time.Duration(n) * time.Second / leastBackupRate)
	until := time.Now().Add(backupPatience)
	if b.due.Before(until) {
		until = b.due
	}
	return n, cmp.Or(err, b.conn.SetWriteDeadline(until))
}

func (b *backupBody) Close() error {
	b.server.backingUp.Store(false)
	return b.content.Close()
}
