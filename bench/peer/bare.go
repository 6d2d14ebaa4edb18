package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

func startBare(ctx context.Context, c *RESTConfig) (*RESTServer, error) {
	return startRESTChild(ctx, c, "bare", "the fasthttp that ledgerd uses", func(w io.Writer) error {
		return json.NewEncoder(w).Encode(c.Answer)
	})
}

// serveBare answers everybody the answer that comes first, set field by field with the names as
// ledgerd spells them, and with the settings of ledgerd's server.
func serveBare(ln net.Listener, in io.Reader) error {
	var a Answer
	decoder := json.NewDecoder(in)
	if err := decoder.Decode(&a); err != nil {
		return err
	}
	body := []byte(a.Body)
	var names, values [][]byte
	for _, f := range a.Fields {
		names, values = append(names, []byte(f.Name)), append(values, []byte(f.Value))
	}
	server := &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			ctx.SetContentType(a.ContentType)
			for i := range names {
				ctx.Response.Header.SetCanonical(names[i], values[i])
			}
			ctx.SetBody(body)
		},
		ReadBufferSize: 18 << 10, MaxRequestBodySize: 64 << 10,
		ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second,
		DisablePreParseMultipartForm: true, NoDefaultServerHeader: true, NoDefaultContentType: true, SecureErrorLogMessage: true,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	_, err := io.Copy(io.Discard, in) // until nobody wants it any more
	return errors.Join(err, ln.Close(), <-served)
}

// text returns the answer as ledgerd writes it, head and body.
func (a *Answer) text(now time.Time) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 200 OK\r\nDate: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n",
		now.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"), a.ContentType, len(a.Body))
	for _, f := range a.Fields {
		fmt.Fprintf(&b, "%s: %s\r\n", f.Name, f.Value)
	}
	return []byte(b.String() + "\r\n" + a.Body)
}
