package httpd

import (
	"bytes"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
	"ledgerd/httpd/ratelimit"
	"ledgerd/httpd/wire"
)

// minCompressBytes is the longest body that is always sent as it is.
const minCompressBytes = 1024

// request is one exchange. Its buffers are reused by later ones.
type request struct {
	server *Server
	ctx    *fasthttp.RequestCtx
	conn   *wire.Conn
	now    time.Time

	client    ratelimit.Client
	allowance ratelimit.Allowance
	route     *route
	params    params

	// The reply.

	status      int
	contentType []byte
	body        []byte
	view        ledger.View   // what the answer was computed from; without a head: the newest
	partial     ledger.Fields // shown but unknown
	tag         []byte        // the entity tag of the record in the body; empty: none
	immutable   bool          // the body will never change
	retryAfter  time.Duration // what an error asks clients to wait, 0 for the usual
	upgraded    bool          // the upgrade handler has written the response, or taken over

	reserved int    // bytes of the budget for answers
	lines    []byte // room for the header lines that all responses carry
	path     []byte // room to decode the path in
	packed   []byte // room for the compressed body
	scratch  [20]byte
}

// begin makes the request ready for an exchange.
func (r *request) begin(s *Server, ctx *fasthttp.RequestCtx, c *wire.Conn) {
	r.server, r.ctx, r.conn, r.now = s, ctx, c, s.config.Now()
	r.allowance, r.route = ratelimit.Unlimited, s.routes[0]
	r.params.reset()
	r.status, r.contentType, r.body = fasthttp.StatusOK, typeJSON, r.body[:0]
	r.view, r.partial, r.tag, r.immutable, r.retryAfter, r.upgraded = ledger.View{}, 0, r.tag[:0], false, 0, false
}

// end lets go of what belongs to the exchange.
func (r *request) end() {
	r.ctx, r.conn, r.view = nil, nil, ledger.View{}
	r.server.answers.give(r.reserved)
	r.reserved = 0
	if cap(r.body) > maxKeptBytes {
		r.server.answers.recycle(r.body)
		r.body = nil
	}
	if cap(r.packed) > maxKeptBytes {
		r.packed = nil
	}
}

// answer makes the reply, whatever happens. fault is what is wrong with the request, if its
// connection has found anything.
func (r *request) answer(fault *wire.Fault) {
	defer func() {
		if v := recover(); v != nil {
			r.server.panicked(r.route.label, v)
			r.ctx.Response.Reset()
			r.upgraded = false
			r.fail(errPanic)
		}
	}()
	if err := r.admit(fault); err != nil {
		if r.fail(err); err == errLimited {
			r.retryAfter = r.allowance.Reset
		}
		return
	}
	r.ctx.SetUserValue(requestKey, r)
	r.server.router.Handler(r.ctx)
}

// admit counts the request for its client, and checks what comes before its route.
func (r *request) admit(fault *wire.Fault) error {
	r.client = r.server.config.Identity.ClientOf(r.conn.Peer, &r.ctx.Request.Header)
	if !r.client.Exempt {
		r.allowance = r.server.limiter.Take(r.client.Key, r.now)
	}
	if r.conn.Refused(!r.allowance.Allowed) {
		r.ctx.SetConnectionClose()
	}
	switch {
	case !r.allowance.Allowed:
		r.server.meters.limited[r.allowance.Window].Add(1)
		return errLimited
	case fault != nil:
		return fault
	}
	return r.setPath()
}

// serve is called by the router: it asks the question of a route.
func (r *request) serve(to *route) {
	r.route = to
	err := r.params.parse(to, r.ctx.URI().QueryString())
	if err == nil {
		err = to.ask(r)
	}
	if err != nil {
		r.fail(err)
	}
}

// variable returns the segment of the path that stands for a name of the route.
func (r *request) variable(name string) string {
	s, _ := r.ctx.UserValue(name).(string)
	return s
}

// fail makes the reply an error record. What was prepared of an answer is dropped; the
// slot shown is then the newest visible one.
func (r *request) fail(err error) {
	status, details := statusOf(err)
	r.status, r.contentType, r.retryAfter = status, typeJSON, retryAfterOf(err)
	r.body = encode.AppendError(r.body[:0], status, details)
	r.view, r.partial, r.tag, r.immutable = ledger.View{}, 0, r.tag[:0], false
}

// finish writes the reply into the response, with the headers all responses carry.
func (r *request) finish() {
	h := &r.ctx.Response.Header
	r.setCommonHeaders(h)
	if r.upgraded {
		r.status = r.ctx.Response.StatusCode()
		r.setStatusHeaders(h)
		return
	}
	if len(r.tag) > 0 && r.matchesTag() {
		r.status = fasthttp.StatusNotModified
	}
	r.setStatusHeaders(h)
	r.ctx.SetStatusCode(r.status)
	if r.status != fasthttp.StatusNoContent && r.status != fasthttp.StatusNotModified {
		h.SetContentTypeBytes(r.contentType)
		r.writeBody()
	}
}

// writeBody hands the body to the response, compressed if it is long and the client
// accepts that. A small body is copied, a long one lent.
func (r *request) writeBody() {
	out := &r.body
	if len(r.body) > minCompressBytes {
		if c := encode.ChooseCoding(r.joined("Accept-Encoding")); c != encode.Identity {
			r.packed = slices.Grow(r.packed[:0], len(r.body)/3) // lists of accounts shrink to a quarter
			r.packed = encode.AppendCompressed(r.packed, r.body, c)
			r.ctx.Response.Header.SetContentEncoding(c.String())
			out = &r.packed
		}
	}
	if cap(*out) <= maxKeptBytes {
		r.ctx.Response.SetBody(*out)
		return
	}
	r.reserveAtLeast(cap(*out))
	r.ctx.Response.SetBodyStream(r.server.answers.lend(*out, r.reserved), len(*out))
	*out, r.reserved = nil, 0
}

// joined returns a header field, its lines joined with commas.
func (r *request) joined(name string) []byte {
	lines := r.ctx.Request.Header.PeekAll(name)
	if len(lines) == 1 {
		return lines[0]
	}
	return bytes.Join(lines, []byte{','})
}

// matchesTag reports whether the client holds what it would be sent.
func (r *request) matchesTag() bool {
	for _, line := range r.ctx.Request.Header.PeekAll("If-None-Match") {
		if encode.MatchesTag(line, r.tag) {
			return true
		}
	}
	return false
}
