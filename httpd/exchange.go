package httpd

import (
	"bytes"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/accesslog"
	"ledgerd/httpd/apikey"
	"ledgerd/httpd/encode"
	"ledgerd/httpd/ratelimit"
	"ledgerd/httpd/wire"
)

// minCompressBytes is the longest body that is always sent as it is.
const minCompressBytes = 1024

// Exchange is a request and its response, until all of the response is written to the client: the part that REST and the doors
// share. Later exchanges reuse its buffers.
type Exchange struct {
	server *Server
	ctx    *fasthttp.RequestCtx
	conn   *wire.Conn
	now    time.Time

	client    ratelimit.Client
	allowance ratelimit.Allowance
	key       *apikey.Key // nil: it has none
	tier      string      // of the API key; empty: there is none
	route     *route

	response
	upgraded bool // the connection has a new owner, who has begun the response

	reserved int    // bytes of the budget for answers
	lacked   bool   // a reservation was refused
	value    []byte // room for the value of a header
	packed   []byte // room for the compressed body
}

// response is what a request is answered with.
type response struct {
	status      int
	contentType []byte
	body        []byte
	page        bool          // it is for people, and not of the interface
	fixed       *page         // its body, instead of the one above; nil: none
	pieces      *pieces       // of which the body is the first; nil: it is the whole
	kept        int           // bytes that are reserved besides the body, or for the pieces that follow
	view        ledger.View   // what the answer was computed from; without a head: the newest
	partial     ledger.Fields // shown but unknown
	tag         []byte        // the entity tag of the record in the body; empty: none
	immutable   bool          // the body will never change
	retryAfter  time.Duration // what an error asks clients to wait, 0 for the usual
}

// begin prepares x for an exchange.
func (x *Exchange) begin(s *Server, to *route, ctx *fasthttp.RequestCtx, c *wire.Conn) {
	x.server, x.ctx, x.conn, x.now, x.route = s, ctx, c, s.config.Now(), to
	x.allowance, x.key, x.tier, x.upgraded, x.lacked = ratelimit.Unlimited, nil, "", false, false
	x.respond(fasthttp.StatusOK)
}

// respond begins the response; what was prepared of another one is dropped.
func (x *Exchange) respond(status int) {
	x.response = response{status: status, contentType: typeJSON, body: x.body[:0], tag: x.tag[:0]}
}

// end frees what belongs to the exchange. It is called after the response was written, since the body is not copied before.
func (x *Exchange) end() {
	x.holdBytes(0)
	x.body, x.packed = x.server.answers.reuse(x.body), x.server.answers.reuse(x.packed)
	x.ctx, x.conn, x.view = nil, nil, ledger.View{}
}

// note counts and logs a complete response. fault is what the connection found wrong with the request, nil for nothing.
func (x *Exchange) note(fault *wire.Fault) {
	took := x.server.config.Now().Sub(x.now)
	x.route.observe(x.status, took)
	if log := x.server.config.AccessLog; log != nil {
		e := x.accessEntry(fault, took)
		if x.pieces != nil {
			x.pieces.log, x.pieces.entry = log, e
			return
		}
		if log.Append(e); x.upgraded {
			x.conn.AtEnd(log.SocketEnds(e, x.server.config.Now))
		}
	}
}

// admit counts the request for its client, and makes the checks that precede its answer. file says that it is for a file of a page.
func (x *Exchange) admit(fault *wire.Fault, file bool) error {
	x.client = x.server.config.Identity.ClientOf(x.conn.Peer, &x.ctx.Request.Header)
	key, unknown := x.apiKey()
	if key != nil {
		x.client, x.tier = key.Client(x.client.Addr), key.Tier()
	}
	file = file && fault == nil && !unknown
	x.key = key
	switch {
	case file && key != nil:
		x.allowance = key.TakeFile(x.server.pages.files(), x.now)
	case file && !x.client.Exempt:
		x.allowance = x.takeFile()
	default:
		x.take(1)
	}
	switch err := x.limitError(); {
	case err != nil:
		return err
	case fault != nil:
		return fault
	case unknown:
		return errKey
	case key != nil && !x.conn.CountFor(x.client):
		x.ctx.SetConnectionClose()
		return errConns
	}
	return nil
}

// take counts n requests for the client, or none of them.
func (x *Exchange) take(n int) {
	switch {
	case x.key != nil:
		x.allowance = x.key.Take(n, x.now)
	case !x.client.Exempt:
		x.allowance = x.server.limiter.Take(x.client.Key, n, x.now)
	}
}

// limitError returns errLimited if the last request was over the limit. A connection that is refused again and again ends.
func (x *Exchange) limitError() error {
	if x.conn.Refused(!x.allowance.Allowed, len(x.ctx.Request.Header.RawHeaders())) {
		x.ctx.SetConnectionClose()
	}
	if x.allowance.Allowed {
		return nil
	}
	x.server.meters.limited[x.allowance.Window].Add(1)
	return errLimited
}

// apiKey returns the API key of the request: that of X-API-Key, else the bearer token, else the subprotocol key.KEY, which
// browsers offer because they cannot set these headers for a socket. unknown says that the request has no valid key but
// an unregistered or empty one, several, or a token without a scheme: it then counts for its address.
func (x *Exchange) apiKey() (key *apikey.Key, unknown bool) {
	ring, h := x.server.config.Keys, &x.ctx.Request.Header
	if ring == nil {
		return nil, false
	}
	sent := slices.Clone(h.PeekAll("X-API-Key")) // the header uses the slice again
	if len(sent) == 0 {
		for _, line := range h.PeekAll(fasthttp.HeaderAuthorization) {
			if words := bytes.Fields(line); len(words) == 1 || len(words) > 1 && bytes.EqualFold(words[0], []byte("Bearer")) {
				sent = append(sent, bytes.Join(words[1:], []byte{' '}))
			}
		}
	}
	if len(sent) == 0 {
		for protocol := range bytes.SplitSeq(x.joined("Sec-WebSocket-Protocol"), []byte{','}) {
			if key, is := bytes.CutPrefix(bytes.TrimSpace(protocol), []byte("key.")); is {
				sent = append(sent, key)
			}
		}
	}
	if len(sent) == 0 {
		return nil, false
	}
	if len(sent) == 1 {
		key = ring.Find(sent[0])
	}
	return key, key == nil
}

// finish writes the reply into the response, with the headers all responses carry.
func (x *Exchange) finish() {
	h := &x.ctx.Response.Header
	if x.lacked && x.pieces == nil { // an answer in pieces goes on
		x.server.meters.overloaded.Add(1)
		x.lacked = false
	}
	switch {
	case x.upgraded:
		x.status = x.ctx.Response.StatusCode()
	case len(x.tag) > 0 && encode.MatchesTag(x.joined("If-None-Match"), x.tag):
		x.status = fasthttp.StatusNotModified
	}
	x.setHeaders(h)
	if x.upgraded {
		return
	}
	x.ctx.SetStatusCode(x.status)
	if x.status != fasthttp.StatusNoContent && x.status != fasthttp.StatusNotModified {
		h.SetContentTypeBytes(x.contentType)
		if x.pieces != nil {
			x.ctx.Response.SetBodyStream(x.pieces, -1)
		} else {
			x.ctx.Response.SetBodyRaw(x.coded())
		}
	}
	x.holdBytes(longBytes(x.body) + longBytes(x.packed) + x.kept)
}

// accessEntry returns what the access log tells of the request once its response is complete.
func (x *Exchange) accessEntry(fault *wire.Fault, took time.Duration) accesslog.Entry {
	e := accesslog.Entry{Time: x.now, Client: x.client.Addr, Status: x.status, Took: took, Tier: x.tier}
	if fault == nil {
		h := &x.ctx.Request.Header
		e.Method, e.Path, e.RequestID, e.Traceparent = x.ctx.Method(), x.sentPath(), h.Peek("X-Request-Id"), h.Peek("Traceparent")
	}
	if x.pieces == nil && !x.ctx.IsHead() && !x.ctx.Response.SkipBody {
		e.Bytes = len(x.ctx.Response.Body())
	}
	return e
}

// coded returns the body, compressed if it is long and the client accepts that.
func (x *Exchange) coded() []byte {
	body := x.body
	if x.fixed != nil {
		body = x.fixed.Body()
	}
	if len(body) <= minCompressBytes {
		return body
	}
	c := encode.ChooseCoding(x.joined("Accept-Encoding"))
	if c == encode.Identity {
		return body
	}
	x.ctx.Response.Header.SetContentEncoding(c.String())
	if x.fixed != nil {
		return x.fixed.coded[c]()
	}
	x.packed = x.server.answers.grow(x.packed, len(x.body)/3) // lists of accounts shrink to a quarter
	x.packed = encode.AppendCompressed(x.packed, x.body, c)
	x.body = x.server.answers.reuse(x.body)
	return x.packed
}

// joined returns a header field, its lines joined with commas.
func (x *Exchange) joined(name string) []byte {
	lines := x.ctx.Request.Header.PeekAll(name)
	if len(lines) == 1 {
		return lines[0]
	}
	return bytes.Join(lines, []byte{','})
}
