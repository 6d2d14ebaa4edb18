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

// request is one exchange, until the client has been written all of it. Its buffers are reused by
// later ones.
type request struct {
	server *Server
	ctx    *fasthttp.RequestCtx
	conn   *wire.Conn
	now    time.Time

	client    ratelimit.Client
	allowance ratelimit.Allowance
	tier      string // of the API key; empty: there is none
	route     *route
	params    params

	response
	upgraded bool // the upgrade handler has written the response, or taken over

	reserved int    // bytes of the budget for answers
	value    []byte // room for the value of a header
	path     []byte // room to decode the path in
	packed   []byte // room for the compressed body
}

// response is what a request is answered with.
type response struct {
	status      int
	contentType []byte
	body        []byte
	page        bool          // it is for people, and not of the interface
	fixed       *page         // its body, instead of the one above; nil: none
	view        ledger.View   // what the answer was computed from; without a head: the newest
	partial     ledger.Fields // shown but unknown
	tag         []byte        // the entity tag of the record in the body; empty: none
	immutable   bool          // the body will never change
	retryAfter  time.Duration // what an error asks clients to wait, 0 for the usual
}

// begin makes the request ready for an exchange.
func (r *request) begin(s *Server, ctx *fasthttp.RequestCtx, c *wire.Conn) {
	r.server, r.ctx, r.conn, r.now = s, ctx, c, s.config.Now()
	r.allowance, r.tier, r.route, r.upgraded = ratelimit.Unlimited, "", s.routes[0], false
	r.params.reset()
	r.respond(fasthttp.StatusOK)
}

// respond begins the response; what was prepared of another one is dropped.
func (r *request) respond(status int) {
	r.response = response{status: status, contentType: typeJSON, body: r.body[:0], tag: r.tag[:0]}
}

// Close lets go of what belongs to the exchange. fasthttp calls it on the values of a context after
// it has written the response: until then the body, which is not copied, and what is reserved for
// it are held.
func (r *request) Close() error {
	s := r.server
	r.holdBytes(0)
	r.body, r.packed = s.answers.reuse(r.body), s.answers.reuse(r.packed)
	r.ctx, r.conn, r.view = nil, nil, ledger.View{}
	s.requests.Put(r)
	return nil
}

// survives reports whether do returned. If it panicked, the reply is that error, which is still to be finished.
func (r *request) survives(do func()) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			r.server.panicked(r.route.label, v)
			r.ctx.Response.Reset()
			r.ctx.SetStatusCode(fasthttp.StatusInternalServerError)
			r.upgraded = false
			r.fail(errPanic)
		}
	}()
	do()
	return true
}

// complete makes the exchange. fault is what is wrong with the request, if its connection has found anything.
func (r *request) complete(fault *wire.Fault) {
	r.survives(func() { r.answer(fault) })
	r.finish()
	took := r.server.config.Now().Sub(r.now)
	r.route.observe(r.status, took)
	if log := r.server.config.AccessLog; log != nil {
		e := r.accessEntry(fault, took)
		if log.Append(e); r.upgraded && r.ctx.Hijacked() {
			r.conn.AtEnd(log.SocketEnds(e, r.server.config.Now))
		}
	}
}

// answer makes the reply.
func (r *request) answer(fault *wire.Fault) {
	if err := r.admit(fault); err != nil {
		if r.fail(err); err == errLimited {
			r.retryAfter = r.allowance.Reset
			r.showInstead(r.server.limited)
		}
		return
	}
	r.server.router.Handler(r.ctx)
}

// admit counts the request for its client, and checks what comes before its route.
func (r *request) admit(fault *wire.Fault) error {
	r.client = r.server.config.Identity.ClientOf(r.conn.Peer, &r.ctx.Request.Header)
	key, unknown := r.apiKey()
	if key != nil {
		from := r.client.Addr
		r.client, r.tier = key.Client(), key.Tier()
		r.client.Addr = from
	}
	file := fault == nil && !unknown && r.asksForFile()
	switch {
	case file && key != nil:
		r.allowance = key.TakeFile(r.server.pages.files(), r.now)
	case key != nil:
		r.allowance = key.Take(r.now)
	case r.client.Exempt:
	case file:
		r.allowance = r.takeFile()
	default:
		r.allowance = r.server.limiter.Take(r.client.Key, r.now)
	}
	if r.conn.Refused(!r.allowance.Allowed, len(r.ctx.Request.Header.RawHeaders())) {
		r.ctx.SetConnectionClose()
	}
	switch {
	case !r.allowance.Allowed:
		r.server.meters.limited[r.allowance.Window].Add(1)
		return errLimited
	case fault != nil:
		return fault
	case unknown:
		return errKey
	case key != nil && !r.conn.CountFor(key.Client()):
		r.ctx.SetConnectionClose()
		return errConns
	}
	return r.setPath()
}

// apiKey returns the key that the request is made with: that of X-API-Key, or else the token of a bearer, or else what a browser, which cannot set
// these for a socket, offers as the subprotocol key.KEY. A key that nobody has, an empty
// one, several, and a token without a scheme, are unknown: such a request counts for its address.
func (r *request) apiKey() (key *apikey.Key, unknown bool) {
	ring, h := r.server.config.Keys, &r.ctx.Request.Header
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
		for protocol := range bytes.SplitSeq(r.joined("Sec-WebSocket-Protocol"), []byte{','}) {
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

// key returns the pubkey in the path that stands for a name of the route.
func (r *request) key(name string, malformed error) (ledger.Pubkey, error) {
	key, err := ledger.ParsePubkey(r.variable(name))
	return key, unless(err == nil, malformed)
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
	r.respond(status)
	r.retryAfter = retryAfterOf(err)
	r.body = encode.AppendError(r.body, status, details)
}

// finish writes the reply into the response, with the headers all responses carry.
func (r *request) finish() {
	h := &r.ctx.Response.Header
	switch {
	case r.upgraded:
		r.status = r.ctx.Response.StatusCode()
	case len(r.tag) > 0 && encode.MatchesTag(r.joined("If-None-Match"), r.tag):
		r.status = fasthttp.StatusNotModified
	}
	r.setHeaders(h)
	if r.upgraded {
		return
	}
	r.ctx.SetStatusCode(r.status)
	if r.status != fasthttp.StatusNoContent && r.status != fasthttp.StatusNotModified {
		h.SetContentTypeBytes(r.contentType)
		r.ctx.Response.SetBodyRaw(r.coded())
	}
	r.holdBytes(longBytes(r.body) + longBytes(r.packed))
}

// accessEntry returns what the access log tells of the request once its response is complete.
func (r *request) accessEntry(fault *wire.Fault, took time.Duration) accesslog.Entry {
	e := accesslog.Entry{Time: r.now, Client: r.client.Addr, Status: r.status, Took: took, Tier: r.tier}
	if fault == nil {
		h := &r.ctx.Request.Header
		e.Method, e.Path, e.RequestID, e.Traceparent = r.ctx.Method(), r.sentPath(), h.Peek("X-Request-Id"), h.Peek("Traceparent")
	}
	if !r.ctx.IsHead() && !r.ctx.Response.SkipBody {
		e.Bytes = len(r.ctx.Response.Body())
	}
	return e
}

// coded returns the body, compressed if it is long and the client accepts that.
func (r *request) coded() []byte {
	body := r.body
	if r.fixed != nil {
		body = r.fixed.Body()
	}
	if len(body) <= minCompressBytes {
		return body
	}
	c := encode.ChooseCoding(r.joined("Accept-Encoding"))
	if c == encode.Identity {
		return body
	}
	r.ctx.Response.Header.SetContentEncoding(c.String())
	if r.fixed != nil {
		return r.fixed.coded[c]()
	}
	r.packed = r.server.answers.grow(r.packed, len(r.body)/3) // lists of accounts shrink to a quarter
	r.packed = encode.AppendCompressed(r.packed, r.body, c)
	r.body = r.server.answers.reuse(r.body)
	return r.packed
}

// joined returns a header field, its lines joined with commas.
func (r *request) joined(name string) []byte {
	lines := r.ctx.Request.Header.PeekAll(name)
	if len(lines) == 1 {
		return lines[0]
	}
	return bytes.Join(lines, []byte{','})
}
