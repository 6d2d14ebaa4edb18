package httpd

import (
	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
	"ledgerd/httpd/wire"
)

// request is an exchange of REST, or at a door.
type request struct {
	Exchange
	door   Door // nil: it is of REST
	params params
}

// handle is one request to the REST side.
func (s *Server) handle(ctx *fasthttp.RequestCtx, c *wire.Conn, fault *wire.Fault) {
	s.exchange(nil, s.routes[0], ctx, c, fault)
}

// exchange is one request at a door, or to the REST side. fault is what is wrong with it, if its connection has found anything.
func (s *Server) exchange(d Door, to *route, ctx *fasthttp.RequestCtx, c *wire.Conn, fault *wire.Fault) {
	r := s.requests.Get().(*request)
	r.door = d
	r.begin(s, to, ctx, c)
	r.params.reset()
	ctx.SetUserValue(requestKey, r) // whose Close comes after the response was written
	whole := r.survives(func() {
		r.survives(func() { r.answer(fault) })
		r.finish()
		r.note(fault)
	})
	if !whole {
		r.survives(r.finish)
	}
}

// survives reports whether do returned. If do panicked, the response is an error, which the caller must finish.
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

// Close ends the exchange. fasthttp calls it on the values of a context after it has written the response.
func (r *request) Close() error {
	s := r.server
	r.end()
	s.requests.Put(r)
	return nil
}

// answer makes the reply.
func (r *request) answer(fault *wire.Fault) {
	err := r.admit(fault, r.door == nil && fault == nil && r.asksForFile())
	if err == nil && r.door != nil {
		err = r.door.Answer(&r.Exchange)
	} else if err == nil {
		if err = r.setPath(); err == nil {
			r.server.router.Handler(r.ctx)
		}
	}
	if err != nil {
		r.fail(err)
	}
}

// serve is called by the router: it asks the question of a route.
func (r *request) serve(to *route) {
	r.route = to
	err := r.params.parse(to, r.ctx.URI())
	r.params.query.Client = r.client.Key
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

// fail makes the reply an error record and drops what was prepared of an answer. The
// slot in its headers is the newest visible one.
func (r *request) fail(err error) {
	status, details := statusOf(err)
	r.respond(status)
	if r.retryAfter = retryAfterOf(err); err == errLimited {
		r.retryAfter = r.allowance.Reset
	}
	if r.door != nil {
		r.body = r.door.AppendError(r.body, status, details)
		return
	}
	if r.body = encode.AppendError(r.body, status, details); err == errLimited {
		r.showInstead(func() *page { return r.server.limitedPage(r.wait()) })
	}
}
