package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/net/http2"
)

// http2Conn is a connection of HTTP/2, of which net/http is the client.
type http2Conn struct {
	*http.ClientConn
	scheme string
	most   int // bytes of a body
}

// HTTP2 is HTTP/2 alone: over TLS where the server agrees to it, and plainly where it expects it.
func HTTP2() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP2(true)
	p.SetUnencryptedHTTP2(true)
	return p
}

// openHTTP2 connects.
func (c *conn) openHTTP2() (link, error) {
	plainly, address := c.load.config.Dial, c.load.config.Address.String()
	secure := plainly.TLS.Clone() // the transport, which makes the handshake, adds to what it is given
	plainly.TLS = nil
	scheme, transport := "http", http.Transport{
		Protocols: HTTP2(), DisableCompression: true, TLSClientConfig: secure, TLSHandshakeTimeout: plainly.Timeout,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return plainly.Dial(ctx, c.index, address) },
	}
	if secure != nil {
		scheme = "https"
	}
	opened, err := transport.NewClientConn(c.phase.last, scheme, "server:0") // the dialer knows where that is
	if err != nil {
		return nil, err
	}
	return &http2Conn{opened, scheme, c.load.config.MostBytes}, nil
}

func (h *http2Conn) exchange(request []byte, response *fasthttp.Response, late time.Time) (int64, error) {
	asked, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
	if err != nil {
		panic(err) // the script was written by this package
	}
	asked.URL.Scheme, asked.URL.Host = h.scheme, asked.Host
	ctx, cancel := context.WithDeadline(context.Background(), late)
	defer cancel()
	answer, err := h.RoundTrip(asked.WithContext(ctx))
	if err != nil {
		return 0, ofStream(err)
	}
	defer answer.Body.Close()
	response.Reset()
	response.SetStatusCode(answer.StatusCode)
	for name, values := range answer.Header {
		for _, value := range values {
			response.Header.Add(name, value)
		}
	}
	n, err := io.Copy(response.BodyWriter(), io.LimitReader(answer.Body, int64(h.most)+1))
	if n > int64(h.most) {
		return n, fasthttp.ErrBodyTooLarge
	}
	if h.isClosed() {
		response.SetConnectionClose()
	}
	return n, ofStream(err)
}

// ofStream returns an error without the numbers in which each request differs.
func ofStream(err error) error {
	if stream, ok := errors.AsType[http2.StreamError](err); ok {
		return fmt.Errorf("the server broke the response off: %v", stream.Code)
	}
	return err
}

func (h *http2Conn) isClosed() bool { return h.Available() == 0 }
