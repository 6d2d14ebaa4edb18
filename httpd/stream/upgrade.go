package stream

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
)

var (
	errFull       = errors.New("the server holds as many WebSocket connections as it may")
	errClientFull = errors.New("this client holds as many WebSocket connections as it may")
	errOrigin     = errors.New("this Origin is not allowed")
	errHandshake  = errors.New("not a valid WebSocket handshake")
	errManyKeys   = errors.New("more than 10000 keys")
)

// upgrader makes the handshake; the frames after it are read and written here, so that
// there is one writer and every frame counts. Compression is never negotiated: a compressed
// frame of a client can hold a thousand times its size. Origins are checked before.
var upgrader = websocket.FastHTTPUpgrader{
	ReadBufferSize: 1, WriteBufferSize: 1, WriteBufferPool: &sync.Pool{}, // not used
	CheckOrigin: func(*fasthttp.RequestCtx) bool { return true },
	Error:       func(ctx *fasthttp.RequestCtx, _ int, _ error) { refuse(ctx, errHandshake) },
}

// Upgrade makes the request a subscriber, or answers with an error. client is who is
// counted; exempt clients are free of the cap per client.
func (h *Hub) Upgrade(ctx *fasthttp.RequestCtx, client netip.Addr, exempt bool) {
	asked, err := h.parseConnect(ctx)
	if err != nil {
		refuse(ctx, err)
		return
	}
	place, err := h.seats.take(client, exempt, time.Now())
	if err != nil {
		refuse(ctx, err)
		return
	}
	socket := ctx.Conn()
	if c, ok := socket.(interface{ IfLost(func()) }); ok {
		c.IfLost(func() { h.seats.abandon(place) })
	}
	if upgrader.Upgrade(ctx, func(conn *websocket.Conn) { h.adopt(socket, conn.NetConn(), place, asked) }) != nil {
		h.seats.free(place) // refused, and answered so
	}
}

// refuse answers a handshake with an error in the shape of all errors.
func refuse(ctx *fasthttp.RequestCtx, err error) {
	status, text := fasthttp.StatusBadRequest, "Invalid request parameters"
	switch {
	case errors.Is(err, errFull):
		status, text = fasthttp.StatusServiceUnavailable, "Service unavailable"
		ctx.Response.Header.Set("Retry-After", "1")
	case errors.Is(err, errClientFull):
		status, text = fasthttp.StatusTooManyRequests, "Rate limit exceeded"
		ctx.Response.Header.Set("Retry-After", "1")
	}
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	fmt.Fprintf(ctx, `{"error":%q,"details":%q}`, text, err.Error())
}

// connect is what a client asked for with its query parameters.
type connect struct {
	wants  wants
	level  ledger.Commitment
	resume ledger.Opt[ledger.Seq]

	conflates bool
}

// parseConnect reads the query of a handshake. Nothing of it is echoed.
func (h *Hub) parseConnect(ctx *fasthttp.RequestCtx) (c connect, err error) {
	if origin := ctx.Request.Header.Peek("Origin"); len(origin) > 0 && len(h.config.Origins) > 0 &&
		!slices.Contains(h.config.Origins, "*") && !slices.Contains(h.config.Origins, string(origin)) {
		return c, errOrigin
	}
	given := make(map[string]bool)
	for name, value := range ctx.QueryArgs().All() {
		key := string(name)
		if !isParameter(key) {
			continue
		}
		if given[key] || len(value) == 0 {
			return c, fmt.Errorf("%s must be given once and not be empty", key)
		}
		given[key] = true
		if err := c.set(key, value); err != nil {
			return c, err
		}
	}
	c.wants.everything = !given["pubkeys"] && !given["programs"] && !given["mode"]
	if c.wants.keys() > maxKeys {
		return c, errManyKeys
	}
	return c, nil
}

func isParameter(name string) bool {
	switch name {
	case "pubkeys", "programs", "mode", "extended", "commitment", "resume_from", "overflow":
		return true
	}
	return false
}

// set takes one parameter.
func (c *connect) set(name string, value []byte) error {
	ok := true
	switch name {
	case "pubkeys":
		return c.name(&c.wants.pubkeys, value, errPubkeys)
	case "programs":
		return c.name(&c.wants.programs, value, errPrograms)
	case "mode":
		ok = string(value) == "none"
	case "extended":
		c.wants.extended = string(value) == "true"
		ok = c.wants.extended || string(value) == "false"
	case "commitment":
		c.level, ok = ledger.ParseCommitment(string(value))
	case "resume_from":
		c.resume.Value, ok = parseSeq(value)
		c.resume.Known = true
	case "overflow":
		c.conflates = string(value) == "conflate"
		ok = c.conflates || string(value) == "disconnect"
	}
	if !ok {
		return errors.New(name + " has a value that is not allowed")
	}
	return nil
}

func (c *connect) name(set *keySet, list []byte, bad error) error {
	if bytes.Count(list, []byte{','}) >= maxKeys {
		return errManyKeys
	}
	keys, err := parseKeys(strings.Split(string(list), ","))
	if err != nil {
		return bad
	}
	keys = eachOnce(keys)
	if len(keys) <= fewKeys {
		set.few = slices.Clip(keys)
		return nil
	}
	for _, k := range keys {
		set.add(k)
	}
	return nil
}

// panicked tells of a fault of ours; the process goes on.
func (h *Hub) panicked(value any) {
	h.meters.panics.Inc()
	h.config.Logger.Error("panic in a WebSocket connection", "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
}
