package httpd

import (
	"net"
	"net/netip"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/wire"
)

// Door answers the requests of a listener of its own in another protocol than REST, such as JSON-RPC. It shares clients, limits, keys,
// connection caps, budgets, the fields of responses and the access log with REST.
type Door interface {
	// Answer makes the response to a request that was counted and has no fault. An error becomes the response of its status.
	Answer(x *Exchange) error
	// AppendError appends the body of an error with a status of HTTP and a text for people.
	AppendError(dst []byte, status int, text string) []byte
}

// ServeDoor is Serve for a door's listener.
func (s *Server) ServeDoor(ln net.Listener, d Door) error {
	return s.ServeWith(ln, func(ctx *fasthttp.RequestCtx, c *wire.Conn, fault *wire.Fault) {
		s.exchange(d, s.routes[doorRoute], ctx, c, fault)
	})
}

// Context returns the request as fasthttp has it. Nothing taken from it outlives Answer.
func (x *Exchange) Context() *fasthttp.RequestCtx { return x.ctx }

// Client returns the address that identifies the client.
func (x *Exchange) Client() netip.Addr { return x.client.Key }

// TakeMore counts n more requests for the client: all of them, or none and an error.
func (x *Exchange) TakeMore(n int) error {
	if n <= 0 {
		return nil
	}
	x.take(n)
	return x.limitError()
}

// TakePage counts page n of those that are read for one answer: each tenth page counts as one more request, so that a long list
// costs more than a short one.
func (x *Exchange) TakePage(n int) error {
	if n%10 != 0 {
		return nil
	}
	return x.TakeMore(1)
}

// Room returns the empty body with room for about so many bytes.
func (x *Exchange) Room(bytes int) []byte {
	x.grow(bytes)
	return x.body
}

// Reply sets status and body of the response, and the view that the body was computed from. A view without a head stands for the
// newest one.
func (x *Exchange) Reply(status int, body []byte, v ledger.View) {
	x.status, x.body, x.view = status, body, v
}

// ReplyType sets the type of the response to another one than JSON.
func (x *Exchange) ReplyType(t string) { x.contentType = []byte(t) }
