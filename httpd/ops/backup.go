package ops

import (
	"errors"
	"io"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	// sendPatience is how far the receiver of a file may fall behind the least rate. One that takes nothing is cut off as any client is.
	sendPatience = 30 * time.Second
	// leastSendRate is how many bytes a second a receiver takes at least: a slower one would keep the others from theirs.
	leastSendRate = 256 << 10
)

var (
	errSlowReceiver = errors.New("the receiver is too slow")
	errSending      = errors.New("another backup, or a walk through all accounts, is under way")
)

// state answers with the hash of the state, or with all of it.
func (s *Server) state(ctx *fasthttp.RequestCtx) error {
	if ctx.QueryArgs().Has("accounts") {
		if !ctx.Request.Header.IsHTTP11() || ctx.IsHead() { // fasthttp would send them chunks, or the end of these, all the same
			writeError(ctx, fasthttp.StatusBadRequest, "all accounts come in chunks, which HTTP/1.0 and HEAD do not have: ask with GET by HTTP/1.1")
			return nil
		}
		return s.sendAlone(ctx, "application/x-ndjson", func() (io.ReadCloser, int64, error) { return s.config.State(true) })
	}
	content, bytes, err := s.config.State(false)
	if err == nil {
		ctx.SetBodyStream(content, int(bytes))
	}
	return err
}

// sendAlone answers with a backup, or all accounts, one at a time: each holds files or memory, and reads them as fast as it can.
func (s *Server) sendAlone(ctx *fasthttp.RequestCtx, contentType string, open func() (io.ReadCloser, int64, error)) error {
	if s.sending.Swap(true) {
		return errSending
	}
	sends := false
	defer func() {
		if !sends {
			s.sending.Store(false)
		}
	}()
	content, bytes, err := open()
	if err != nil {
		return err
	}
	sends = true
	ctx.SetContentType(contentType)
	send(ctx, &soleSend{content, s}, int(bytes))
	return nil
}

// soleSend lets another backup, or walk through all accounts, begin when it is closed.
type soleSend struct {
	io.ReadCloser
	server *Server
}

func (c *soleSend) Close() error {
	c.server.sending.Store(false)
	return c.ReadCloser.Close()
}

// send answers with what is as long as is said, and closes it.
func send(ctx *fasthttp.RequestCtx, content io.ReadCloser, bytes int) {
	ctx.Response.ImmediateHeaderFlush = true // its length is known long before its end
	ctx.SetBodyStream(newSentBody(content), bytes)
}

// sentBody is read, and closed, by the goroutine that writes to the connection. A read that fails ends the connection before
// the length that was announced.
type sentBody struct {
	io.ReadCloser
	due time.Time // when what was read so far has been sent at the least rate, and patience is over
}

func newSentBody(content io.ReadCloser) *sentBody {
	return &sentBody{content, time.Now().Add(sendPatience)}
}

func (b *sentBody) Read(p []byte) (int, error) {
	if time.Now().After(b.due) {
		return 0, errSlowReceiver
	}
	n, err := b.ReadCloser.Read(p)
	b.due = b.due.Add(time.Duration(n) * time.Second / leastSendRate)
	return n, err
}
