package httpd

import (
	"bytes"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
)

// maxKeptBytes is the largest buffer a request takes back to the pool. Larger ones go to
// the garbage collector, or the pool would fill with the largest lists ever asked for.
const maxKeptBytes = 64 << 10

// request is one exchange. Its buffers are reused by later ones.
type request struct {
	server *Server
	ctx    *fasthttp.RequestCtx
	conn   *conn
	now    time.Time

	client    client
	allowance allowance
	route     route
	variable  []byte // the variable segment of the path, decoded
	params    params

	// The reply.

	status      int
	contentType []byte
	body        []byte
	view        ledger.View   // what the answer was computed from; without a head: the newest
	partial     ledger.Fields // shown but unknown
	tag         uint64
	tagged      bool          // the body is a record with an entity tag
	immutable   bool          // the body will never change
	patience    time.Duration // what an error asks clients to wait, 0 for the usual
	foreign     bool          // the upgrade handler has written the response, or taken over

	lines   []byte // room for the header lines that all responses carry
	tagText []byte // room for the entity tag
	path    []byte // room to decode the path in
	query   []byte // room to decode the query in
	packed  []byte // room for the compressed body
	scratch [64]byte
}

// begin makes the request ready for an exchange. What it does not set the last exchange left
// behind, and is set before it is read.
func (r *request) begin(s *Server, ctx *fasthttp.RequestCtx) {
	// Every connection of ours is a conn: the listener makes them.
	c := ctx.Conn().(*conn)
	r.ctx = ctx
	r.reset(s, c, s.arrival(ctx, c))
}

// reset is begin without a context, for which there is none.
func (r *request) reset(s *Server, c *conn, now time.Time) {
	r.server, r.conn, r.now = s, c, now
	r.allowance, r.route, r.params.keys = unlimited, routeNone, r.params.keys[:0]
	r.params.query, r.params.limit, r.params.include = ledger.Query{}, 0, includeNothing
	if r.params.before.Known || r.params.after.Known {
		r.params.before, r.params.after = ledger.Opt[ledger.Signature]{}, ledger.Opt[ledger.Signature]{}
	}
	r.status, r.contentType, r.body = fasthttp.StatusOK, typeJSON, r.body[:0]
	r.partial, r.tagged, r.immutable, r.foreign, r.patience = 0, false, false, false, 0
}

// end lets go of what belongs to the exchange.
func (r *request) end() {
	r.ctx, r.conn, r.view, r.variable, r.params.cursor = nil, nil, ledger.View{}, nil, nil
	if cap(r.body) > maxKeptBytes { // what was sent of it is a copy, or compressed
		_ = r.server.lend(r.body).Close()
	}
	r.body, r.packed = kept(r.body), kept(r.packed)
}

func kept(b []byte) []byte {
	if cap(b) > maxKeptBytes {
		return nil
	}
	return b
}

// answer makes the reply, whatever happens.
func (r *request) answer() {
	defer func() {
		if v := recover(); v != nil {
			r.server.panicked(r.route, v)
			r.ctx.Response.Reset()
			r.foreign = false
			r.fail(errPanic)
		}
	}()
	if err := r.ask(); err != nil {
		r.fail(err)
	}
}

// ask goes the way of every exchange: who, may they, what, and the question itself.
func (r *request) ask() error {
	if r.conn.begun.is {
		return r.goOn()
	}
	h := &r.ctx.Request.Header
	r.client = r.server.identity.clientOf(r.conn.peer, h)
	if err := r.admit(); err != nil {
		return err
	}
	if r.conn.verdict.refused() {
		return verdictErrors[r.conn.verdict]
	}
	if hasWord(h.Peek("Connection"), "close") {
		r.ctx.SetConnectionClose()
	}
	uri := r.ctx.URI()
	path, err := r.decodePath(uri.PathOriginal())
	if err != nil {
		return err
	}
	if r.route, r.variable = matchPath(path); r.route == routeNone {
		return errNoRoute
	}
	switch {
	case h.IsOptions():
		r.status = fasthttp.StatusNoContent
		return nil
	case !h.IsGet() && !h.IsHead():
		return errMethod
	}
	if r.query, err = r.params.parseQuery(r.route, uri.QueryString(), r.query); err != nil {
		return err
	}
	return r.dispatch()
}

// admit counts the request for its client. errLimited says that they may ask nothing now.
func (r *request) admit() error {
	if !r.client.exempt {
		r.allowance = r.server.limiter.take(r.client.key, r.now)
	}
	if !r.allowance.allowed {
		return errLimited
	}
	return nil
}

// decodePath returns the decoded path, in the request's own room if it has escapes.
func (r *request) decodePath(path []byte) (decoded []byte, err error) {
	if bytes.IndexByte(path, '%') < 0 {
		return path, checkPath(path)
	}
	r.path, err = unescapePath(r.path[:0], path)
	return r.path, err
}

// dispatch asks the question of the route.
func (r *request) dispatch() error {
	switch r.route {
	case routeAccount:
		return r.account()
	case routeBalance:
		return r.balance()
	case routeTokens:
		return r.tokens()
	case routeProgram:
		return r.program()
	case routeAccounts:
		return r.accounts()
	case routeTransaction:
		return r.transaction()
	case routeRecent:
		return r.recent()
	case routeLatestBlock:
		return r.latestBlock()
	case routeBlock:
		return r.block()
	case routeHealth:
		return r.health()
	case routeStatus:
		return r.nodeStatus()
	case routeMetrics:
		return r.metrics()
	case routeOpenAPI:
		return r.openAPI()
	case routeSocket:
		return r.upgrade()
	}
	return errNoRoute
}

// fail makes the reply an error record. What was prepared of an answer is dropped; the
// slot told is then the newest visible one.
func (r *request) fail(err error) {
	status, details := statusOf(err)
	r.status, r.contentType, r.patience = status, typeJSON, retryAfterOf(err)
	r.body = appendError(r.body[:0], status, details)
	r.view, r.partial, r.tagged, r.immutable = ledger.View{}, 0, false, false
}

// finish writes the reply into the response, with the headers all responses carry.
func (r *request) finish() {
	h := &r.ctx.Response.Header
	if r.tagged {
		r.tagText = appendTag(r.tagText[:0], r.tag)
	}
	r.setCommonHeaders(h)
	if r.foreign {
		r.status = r.ctx.Response.StatusCode()
		r.setStatusHeaders(h)
		return
	}
	if r.tagged && matchesTag(&r.ctx.Request.Header, r.tagText) {
		r.status = fasthttp.StatusNotModified
	}
	r.setStatusHeaders(h)
	r.ctx.SetStatusCode(r.status)
	if r.status != fasthttp.StatusNoContent && r.status != fasthttp.StatusNotModified {
		h.SetContentTypeBytes(r.contentType)
		r.writeBody()
	}
}

// setCommonHeaders sets what is on every response, whatever its status.
//
// fasthttp takes header fields one by one, looks each up among those that are there and
// searches its value for line ends, which for a dozen of them costs more than the look-up of
// an account. So all lines but the end of the last are handed to it as the name of that one:
// it writes names as they are. None of their bytes comes from a client.
func (r *request) setCommonHeaders(h *fasthttp.ResponseHeader) {
	r.lines = r.appendCommon(r.lines[:0])
	caching := noCache
	if r.immutable {
		caching = immutable
	}
	h.SetCanonical(r.lines, caching)
	if !r.allowance.allowed {
		setNumber(h, nameRetryAfter, retryAfter(r.allowance.reset), r.scratch[:])
	}
}

// appendCommon appends what is on every response, up to the last name.
func (r *request) appendCommon(b []byte) []byte {
	if r.view.Head == nil {
		r.view = ledger.View{Head: r.server.ledger.Head()}
	}
	b = appendAllowance(b, &r.allowance, r.now)
	b = appendTip(b, r.view, r.now)
	b = appendPartial(b, r.partial, r.view.Lacks)
	if r.tagged {
		b = append(b, "\r\nETag: "...)
		b = append(b, r.tagText...)
	}
	return append(b, fixedLines...)
}

// setStatusHeaders sets what goes with some statuses.
func (r *request) setStatusHeaders(h *fasthttp.ResponseHeader) {
	switch r.status {
	case fasthttp.StatusServiceUnavailable, fasthttp.StatusTooManyRequests:
		if len(h.PeekCanonical(nameRetryAfter)) == 0 {
			setNumber(h, nameRetryAfter, retryAfter(max(r.patience, usualPatience)), r.scratch[:])
		}
	case fasthttp.StatusMethodNotAllowed:
		h.SetCanonical(nameAllow, allowedMethods)
	case fasthttp.StatusNoContent:
		for i := range preflightHeaders {
			h.SetCanonical(preflightHeaders[i][0], preflightHeaders[i][1])
		}
	}
}

// writeBody hands the body to the response, compressed if it is long and the client
// accepts that. A large buffer is lent to it, a small one copied.
func (r *request) writeBody() {
	response := &r.ctx.Response
	response.SkipBody = r.ctx.IsHead()
	out := &r.body
	if len(r.body) > minCompressBytes {
		if c := chooseCoding(acceptEncoding(&r.ctx.Request.Header)); c != identityCoding {
			r.packed = r.server.compressor.appendCompressed(r.packed[:0], r.body, c)
			response.Header.SetContentEncoding(codingNames[c])
			out = &r.packed
		}
	}
	if cap(*out) > maxKeptBytes {
		response.SetBodyStream(r.server.lend(*out), len(*out))
		*out = nil
		return
	}
	response.SetBody(*out)
}

// acceptEncoding returns the field, its lines joined.
func acceptEncoding(h *fasthttp.RequestHeader) []byte {
	lines := h.PeekAll("Accept-Encoding")
	if len(lines) == 1 {
		return lines[0]
	}
	return bytes.Join(lines, []byte{','})
}

// matchesTag reports whether If-None-Match names the tag, by the weak comparison, or is
// a star.
func matchesTag(h *fasthttp.RequestHeader, tag []byte) bool {
	opaque := bytes.TrimPrefix(tag, []byte("W/"))
	for _, line := range h.PeekAll("If-None-Match") {
		for len(line) > 0 {
			var element []byte
			element, line, _ = bytes.Cut(line, []byte{','})
			element = bytes.Trim(element, " \t")
			if string(element) == "*" || bytes.Equal(bytes.TrimPrefix(element, []byte("W/")), opaque) {
				return true
			}
		}
	}
	return false
}

// hasWord reports whether a comma-separated field has the lower-case word in any case.
func hasWord(field []byte, word string) bool {
	for len(field) > 0 {
		var element []byte
		element, field, _ = bytes.Cut(field, []byte{','})
		if equalFold(bytes.Trim(element, " \t"), word) {
			return true
		}
	}
	return false
}
