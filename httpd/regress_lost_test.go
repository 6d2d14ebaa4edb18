package httpd

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// An upgrade handler hears of a connection that ends before its answer was written, once, and of no
// other.
func TestALostHandshakeIsTold(t *testing.T) {
	for _, lost := range []bool{true, false} {
		told, ended := make(chan bool, 2), make(chan bool)
		w := serveTCP(t, func(c *Config) {
			c.Upgrade = func(ctx *fasthttp.RequestCtx, _ netip.Addr, _ bool) {
				ctx.SetStatusCode(http.StatusSwitchingProtocols)
				ours := ctx.Conn().(*conn)
				ours.IfLost(func() { told <- true })
				if lost {
					_ = ours.NetConn().Close()
				}
				ctx.Hijack(func(c net.Conn) {
					_ = ours.Detach().Close()
					close(ended)
				})
			}
		})
		c := w.dial()
		if _, err := io.WriteString(c, "GET /api/ws/accounts HTTP/1.1\r\nHost: x\r\n"+strings.Join(handshake, "\r\n")+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if lost {
			<-told
		} else {
			<-ended
		}
		_, _ = io.Copy(io.Discard, c)
		if len(told) > 0 {
			t.Errorf("lost = %t: told once too often", lost)
		}
	}
}
