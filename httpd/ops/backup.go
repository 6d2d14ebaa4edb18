package ops

import (
	"cmp"
	"io"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/httpd/wire"
)

const (
	// sendPatience is how long the receiver of a file may take for each piece of it, and how far it may fall behind the least rate.
	sendPatience = 30 * time.Second
	// leastSendRate is how many bytes a second a receiver takes at least: a slower one would keep the others from theirs.
	leastSendRate = 256 << 10
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
	send(ctx, c, &soleBackup{content, s}, int(bytes))
}

// soleBackup lets another backup begin when it is closed.
type soleBackup struct {
	io.ReadCloser
	server *Server
}

func (b *soleBackup) Close() error {
	b.server.backingUp.Store(false)
	return b.ReadCloser.Close()
}

// send answers with what is as long as is said, and closes it.
func send(ctx *fasthttp.RequestCtx, c *wire.Conn, content io.ReadCloser, bytes int) {
	ctx.Response.ImmediateHeaderFlush = true // its length is known long before its end
	ctx.SetBodyStream(newSentBody(content, c), bytes)
}

// sentBody is read, and closed, by the goroutine that writes to the connection. A read that fails ends the connection before
// the length that was announced.
type sentBody struct {
	io.ReadCloser
	conn *wire.Conn
	due  time.Time // when what was read so far has been sent at the least rate, and patience is over
}

func newSentBody(content io.ReadCloser, c *wire.Conn) *sentBody {
	return &sentBody{content, c, time.Now().Add(sendPatience)}
}

func (b *sentBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.due = b.due.Add(time.Duration(n) * time.Second / leastSendRate)
	until := time.Now().Add(sendPatience)
	if b.due.Before(until) {
		until = b.due
	}
	return n, cmp.Or(err, b.conn.SetWriteDeadline(until))
}
