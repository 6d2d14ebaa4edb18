package httpd

import (
	"bytes"
	"net/url"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"ledgerd/httpd/promtext"
)

// basePath is in front of every path of the interface.
const basePath = "/api"

// route is one row of the interface. GET and HEAD are answered; OPTIONS and other methods are the
// router's.
type route struct {
	path   string               // below basePath, as fasthttp/router writes it
	label  string               // of its metrics
	params []*parameter         // that its query may have
	limit  limits               // of the parameter limit
	ask    func(*request) error // makes the reply; an error becomes the reply of its status

	requests [statusClasses]promtext.Counter
	latency  promtext.Histogram
}

const doorRoute, firstPage = 1, 2

// limits are the usual value of the parameter limit, and the highest one.
type limits struct{ usual, most int }

// newRoutes returns the rows of the interface. Before them, the first one stands for requests without
// a route, that at doorRoute for those at doors, and those from firstPage on for the resources outside the interface, by their kind.
func newRoutes() []*route {
	recent, lists := limits{100, 1000}, limits{1000, 10_000}
	return []*route{
		{label: "none"}, {label: "rpc"}, {label: "page"}, {label: "manual"}, {label: "file"},
		{path: "/health", label: "health", params: []*parameter{paramDetails}, ask: (*request).health},
		{path: "/status", label: "status", ask: (*request).nodeStatus},
		{path: "/metrics", label: "metrics", ask: (*request).metrics},
		{path: "/openapi.json", label: "openapi", ask: (*request).openAPI},
		{path: "/blocks/latest", label: "blocks_latest", params: reads(), ask: (*request).latestBlock},
		{path: "/blocks/{slot}", label: "block", params: reads(paramParts), ask: (*request).block},
		{path: "/transaction/{signature}", label: "transaction", params: reads(), ask: (*request).transaction},
		{path: "/transactions/recent", label: "transactions_recent", params: reads(paramLimit, paramBefore, paramAfter), limit: recent, ask: (*request).recent},
		{path: "/account/{pubkey}/transactions", label: "account_transactions", params: reads(paramLimit, paramBefore, paramAfter, paramOrder, paramStatus, paramFromSlot, paramToSlot), limit: recent, ask: (*request).history},
		{path: "/account/{pubkey}", label: "account", params: reads(paramAccountParts, paramDataSlice), ask: (*request).account},
		{path: "/account/{pubkey}/balance", label: "account_balance", params: reads(), ask: (*request).balance},
		{path: "/account/{pubkey}/tokens", label: "account_tokens", params: reads(paramLimit, paramCursor), limit: lists, ask: (*request).tokens},
		{path: "/account/{pubkey}/holders", label: "account_holders", params: reads(paramLimit), limit: limits{20, 100}, ask: (*request).holders},
		{path: "/accounts/program/{program_id}", label: "program_accounts", params: reads(paramLimit, paramCursor, paramAccountParts, paramDataSlice, paramDataSize, paramMemcmp), limit: lists, ask: (*request).program},
		{path: "/accounts", label: "accounts", params: reads(paramAccountParts, paramDataSlice, paramKeys), ask: (*request).accounts},
		{path: "/ws/accounts", label: "ws_accounts", ask: (*request).upgrade},
	}
}

// requestKey is where a context holds its *request for the router's handlers.
const requestKey = "ledgerd.request"

func requestOf(ctx *fasthttp.RequestCtx) *request { return ctx.UserValue(requestKey).(*request) }

// newRouter returns a router of the rows and pages. It redirects nothing: setPath has normalized each path.
func newRouter(routes []*route, all pages) *router.Router {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath = false, false
	for _, row := range routes {
		if row.ask == nil {
			continue
		}
		handler := func(ctx *fasthttp.RequestCtx) { requestOf(ctx).serve(row) }
		r.GET(basePath+row.path, handler)
		r.HEAD(basePath+row.path, handler)
	}
	for path, p := range all {
		handler := func(ctx *fasthttp.RequestCtx) { requestOf(ctx).show(routes[firstPage+p.Kind], p) }
		r.GET(path, handler)
		r.HEAD(path, handler)
	}
	r.NotFound = func(ctx *fasthttp.RequestCtx) {
		r := requestOf(ctx)
		r.fail(errNoRoute)
		r.showInstead(func() *page { return r.server.missing })
	}
	r.MethodNotAllowed = func(ctx *fasthttp.RequestCtx) { requestOf(ctx).fail(errMethod) }
	r.GlobalOPTIONS = func(ctx *fasthttp.RequestCtx) { requestOf(ctx).status = fasthttp.StatusNoContent }
	return r
}

// setPath gives the router the path of a request with its escapes decoded and without a slash at
// its end. It refuses a path that different programs read differently: with bad escapes, an escaped
// slash, control bytes, or two dots in a row. No path of ours has an empty segment.
func (r *request) setPath() error {
	sent := r.sentPath()
	path := sent
	if bytes.IndexByte(sent, '%') >= 0 {
		decoded, err := url.PathUnescape(string(sent))
		path = []byte(decoded)
		if err != nil || bytes.Count(path, []byte("/")) != bytes.Count(sent, []byte("/")) || bytes.ContainsFunc(path, isControl) {
			return errPath
		}
	}
	if bytes.Contains(path, []byte("..")) {
		return errPath
	}
	if bytes.Contains(path, []byte("//")) || bytes.HasPrefix(path, []byte("/*")) { // the router takes "/*" for the whole server
		return errNoRoute
	}
	if path = bytes.TrimSuffix(path, []byte("/")); len(path) == 0 {
		path = []byte("/")
	}
	if len(path) != len(sent) {
		r.ctx.URI().SetPathBytes(path)
	}
	return nil
}

// sentPath returns the path of a request as it was sent. Where the target is a whole URL, setPath changes it.
func (x *Exchange) sentPath() []byte {
	if target := x.ctx.RequestURI(); target[0] == '/' {
		// fasthttp takes what follows two slashes for a host if there is "://" anywhere.
		path, _, _ := bytes.Cut(target, []byte{'?'})
		return path
	}
	return x.ctx.URI().PathOriginal()
}

// maxParameters bounds the parameters of a query: for the longest query of a connection fasthttp keeps some 64 bytes for each
// parameter as long as the connection lasts.
const maxParameters = 64

// checkQuery refuses a query that must not be parsed: it has too many parameters, or a percent sign that is not followed by two hexadecimal digits.
func checkQuery(query []byte) error {
	if bytes.Count(query, []byte{'&'}) >= maxParameters {
		return errParameters
	}
	if bytes.IndexByte(query, '%') < 0 { // which allocates nothing
		return nil
	}
	_, err := url.QueryUnescape(string(query))
	return unless(err == nil, errEscape)
}

func isControl(c rune) bool { return c < ' ' || c == 0x7f }
