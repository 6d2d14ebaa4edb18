package stream

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"

	"ledgerd/httpd/ratelimit"
)

// rejection is why a handshake is refused.
type rejection struct {
	reason string // one of rejectionReasons
	status int    // of HTTP, that it is answered with
	error
}

// HTTPStatus returns the status that a handshake is answered with.
func (r *rejection) HTTPStatus() int { return r.status }

var (
	errFull       = &rejection{"full", fasthttp.StatusServiceUnavailable, errors.New("the server holds as many WebSocket connections as it may")}
	errClientFull = &rejection{"client", fasthttp.StatusTooManyRequests, errors.New("this client holds as many WebSocket connections as it may")}
	errMemory     = &rejection{"memory", fasthttp.StatusServiceUnavailable, &endMemory}
	errOrigin     = &rejection{"origin", fasthttp.StatusBadRequest, errors.New("this Origin is not allowed")}
	errHandshake  = &rejection{"request", fasthttp.StatusBadRequest, errors.New("not a valid WebSocket handshake")}
)

// rejectionReasons are all reasons, each one value of a metric's label.
var rejectionReasons = []string{"full", "client", "memory", "origin", "request"}

// upgrader makes the handshake; the frames after it are read and written here, so that
// there is one writer and every frame counts. Compression is never negotiated: a compressed
// frame of a client can hold a thousand times its size. Origins are checked before.
var upgrader = websocket.FastHTTPUpgrader{
	Subprotocols:   []string{"ledgerd"},                                  // selected where it is offered: beside it a browser offers its API key, which must not come back
	ReadBufferSize: 1, WriteBufferSize: 1, WriteBufferPool: &sync.Pool{}, // not used
	CheckOrigin: func(*fasthttp.RequestCtx) bool { return true },
	Error:       func(*fasthttp.RequestCtx, int, error) {}, // who calls Upgrade answers
}

// Upgrade makes the request a subscriber, or returns why it is refused, with an HTTPStatus. client is whom the connection counts for; exempt clients
// are free of the caps. The subscriber's position is fixed before the client can read the answer.
func (h *Hub) Upgrade(ctx *fasthttp.RequestCtx, client ratelimit.Client) error {
	asked, err := parseQuery(ctx.QueryArgs())
	return h.upgrade(ctx, client, asked.names.count(), err, func(place *seat) *connection { return &h.join(asked, place).connection })
}

// upgrade makes the request a connection with some names, or returns why it is refused: for the error given if that is not nil.
func (h *Hub) upgrade(ctx *fasthttp.RequestCtx, client ratelimit.Client, named int, err error, join func(*seat) *connection) error {
	place, why := h.admit(ctx, client, named, err)
	if why != nil {
		return h.countRefused(why)
	}
	c, socket := join(place), ctx.Conn()
	if place.isRevoked() { // since it was let in, and before EndRevoked could find it
		c.outbox.close(endRevoked)
	}
	abandon := sync.OnceFunc(c.depart)
	if conn, ok := socket.(interface{ IfLost(func()) }); ok {
		conn.IfLost(abandon) // the answer was not written, and nobody adopts the socket
	}
	if upgrader.Upgrade(ctx, func(conn *websocket.Conn) { c.adopt(socket, conn.NetConn()) }) != nil {
		abandon()
		return h.countRefused(errHandshake)
	}
	return nil
}

// admit takes a seat for a request, or returns why it is refused: for the error given if that is not nil, unless its origin is not allowed.
func (h *Hub) admit(ctx *fasthttp.RequestCtx, client ratelimit.Client, named int, err error) (*seat, *rejection) {
	switch {
	case !h.allowsOrigins(ctx.Request.Header.PeekAll("Origin")):
		return nil, errOrigin
	case err != nil:
		return nil, &rejection{"request", fasthttp.StatusBadRequest, err}
	case !h.memory.Allows(batchBytes + named*nameBytes):
		return nil, errMemory
	}
	return h.seats.take(client)
}

// WouldRefuse returns why a handshake in place of this request would be refused, nil if it would not be: browsers hide from a program
// why its handshake was refused. It does not count as a refusal.
func (h *Hub) WouldRefuse(ctx *fasthttp.RequestCtx, client ratelimit.Client) error {
	asked, err := parseQuery(ctx.QueryArgs())
	place, why := h.admit(ctx, client, asked.names.count(), err)
	if why != nil {
		return why
	}
	place.free()
	return nil
}

// countRefused counts a handshake that is refused, and returns why.
func (h *Hub) countRefused(why *rejection) error {
	h.meters.refused[why.reason].Inc()
	return why
}

// panicked notes a fault of ours; the process goes on.
func (h *Hub) panicked(value any) {
	h.meters.panics.Inc()
	h.config.Logger.Error("panic in a WebSocket connection", "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
}
