package stream

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"
)

// rejection is why a handshake was refused. Each is one value of a metric's label.
type rejection uint8

const (
	rejectedFull rejection = iota
	rejectedClient
	rejectedOrigin
	rejectedRequest
	rejections
)

var rejectionNames = [rejections]string{"full", "client", "origin", "request"}

var (
	errFull       = errors.New("the server holds as many WebSocket connections as it may")
	errClientFull = errors.New("this client holds as many WebSocket connections as it may")
	errHandshake  = errors.New("not a valid WebSocket handshake")
)

// upgrader makes the handshake; the frames after it are read and written here, so that
// there is one writer and every frame counts. Compression is never negotiated: a compressed
// frame of a client can hold a thousand times its size. Origins are checked before.
var upgrader = websocket.FastHTTPUpgrader{
	ReadBufferSize: 1, WriteBufferSize: 1, WriteBufferPool: &sync.Pool{}, // not used
	CheckOrigin: func(*fasthttp.RequestCtx) bool { return true },
	Error:       func(*fasthttp.RequestCtx, int, error) {}, // Upgrade answers
}

// Upgrade makes the request a subscriber, or answers with an error. client is the address that the
// connection counts for; exempt clients are free of the cap per client.
func (h *Hub) Upgrade(ctx *fasthttp.RequestCtx, client netip.Addr, exempt bool) {
	if !h.config.allowsOrigins(ctx.Request.Header.PeekAll("Origin")) {
		h.refuse(ctx, errOrigin)
		return
	}
	asked, err := parseQuery(ctx.QueryArgs())
	if err != nil {
		h.refuse(ctx, err)
		return
	}
	place, err := h.seats.take(client, exempt, time.Now())
	if err != nil {
		h.refuse(ctx, err)
		return
	}
	socket := ctx.Conn()
	if c, ok := socket.(interface{ IfLost(func()) }); ok {
		c.IfLost(func() { h.seats.free(place) }) // the answer was not written, and nobody adopts the socket
	}
	if upgrader.Upgrade(ctx, func(conn *websocket.Conn) { h.adopt(socket, conn.NetConn(), place, asked) }) != nil {
		h.seats.free(place)
		h.refuse(ctx, errHandshake)
	}
}

// refuse answers a handshake with an error in the shape of all errors.
func (h *Hub) refuse(ctx *fasthttp.RequestCtx, err error) {
	why, status, text := rejectedRequest, fasthttp.StatusBadRequest, "Invalid request parameters"
	switch err {
	case errFull:
		why, status, text = rejectedFull, fasthttp.StatusServiceUnavailable, "Service unavailable"
		ctx.Response.Header.Set("Retry-After", "1")
	case errClientFull:
		why, status, text = rejectedClient, fasthttp.StatusTooManyRequests, "Rate limit exceeded"
		ctx.Response.Header.Set("Retry-After", "1")
	case errOrigin:
		why = rejectedOrigin
	}
	h.meters.refused[why].Inc()
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	fmt.Fprintf(ctx, `{"error":%q,"details":%q}`, text, err.Error())
}

// panicked notes a fault of ours; the process goes on.
func (h *Hub) panicked(value any) {
	h.meters.panics.Inc()
	h.config.Logger.Error("panic in a WebSocket connection", "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
}
