package httpd

import (
	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
	"ledgerd/httpd/wire"
)

// request is an exchange of REST.
type request struct {
	Exchange
	params params
	path   []byte // room to decode the path in
}

// handle is one request to the REST side.
func (s *Server) handle(ctx *fasthttp.RequestCtx, c *wire.Conn, fault *wire.Fault) {
	r := s.requests.Get().(*request)
	r.begin(s, s.routes[0], ctx, c)
	r.params.reset()
	ctx.SetUserValue(requestKey, r) // whose Close comes after the response was written
	r.run(r, fault)
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
	err := r.admit(fault, fault == nil && r.asksForFile())
	if err == nil {
		err = r.setPath()
	}
	if err != nil {
		if r.fail(err); err == errLimited {
			r.retryAfter = r.allowance.Reset
			r.showInstead(r.server.limited)
		}
		return
	}
	r.server.router.Handler(r.ctx)
}

// serve is called by the router: it asks the question of a route.
func (r *request) serve(to *route) {
	r.route = to
	err := r.params.parse(to, r.ctx.URI().QueryString())
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

// fail makes the reply an error record. What was prepared of an answer is dropped; the
// slot shown is then the newest visible one.
func (r *request) fail(err error) {
	status, details := statusOf(err)
	r.respond(status)
	r.retryAfter = retryAfterOf(err)
	r.body = encode.AppendError(r.body, status, details)
}
