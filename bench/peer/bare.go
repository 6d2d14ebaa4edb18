package peer

import (
	"time"

	"github.com/valyala/fasthttp"
)

// bare answers everybody the same, set field by field, and with the settings of ledgerd's server.
func bare(t *told) *fasthttp.Server {
	body := []byte(t.Answer.Body)
	var names, values [][]byte
	for name := range t.Answer.Head {
		names, values = append(names, []byte(name)), append(values, []byte(t.Answer.Head.Get(name)))
	}
	return &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			for i := range names {
				ctx.Response.Header.SetCanonical(names[i], values[i])
			}
			ctx.SetBody(body)
		},
		ReadBufferSize: 18 << 10, MaxRequestBodySize: 64 << 10,
		ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second,
		DisablePreParseMultipartForm: true, NoDefaultServerHeader: true, NoDefaultContentType: true, SecureErrorLogMessage: true,
	}
}
