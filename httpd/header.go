package httpd

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
)

// Values of response headers, as bytes so that setting them allocates nothing.
var (
	noCache   = []byte("no-cache")
	immutable = []byte("public, max-age=31536000, immutable")

	typeJSON    = []byte("application/json")
	typeMetrics = []byte("text/plain; version=0.0.4; charset=utf-8")
)

// field is a response header that always has the same value.
type field struct{ name, value []byte }

// everywhere are the fields that are the same on every response. Bodies depend on Accept-Encoding alone; no
// origin is trusted more than another, because there is nothing but public data.
var everywhere = []field{
	{[]byte("Access-Control-Allow-Origin"), []byte("*")},
	{[]byte("Access-Control-Expose-Headers"), []byte("*")},
	{[]byte("Vary"), []byte("Accept-Encoding")},
	{[]byte("X-Content-Type-Options"), []byte("nosniff")},
}

// preflight are the fields of the answer to OPTIONS.
var preflight = []field{
	{[]byte("Access-Control-Allow-Headers"), []byte("If-None-Match, Content-Type, Authorization, X-API-Key, Cache-Control, traceparent")},
	{[]byte("Access-Control-Max-Age"), []byte("86400")},
}

// pagePolicy is added to the policy of pages, which load files and ask the interface of their own
// origin and nothing else. A page has no script and no style but by reference.
const pagePolicy = "; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'" +
	"; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// recordPolicy and wholePagePolicy are the values of Content-Security-Policy.
var (
	recordPolicy    = []byte("default-src 'none'")
	wholePagePolicy = []byte("default-src 'none'" + pagePolicy)
)

// Names of the other response headers, as they are sent.
var (
	nameLimit      = []byte("X-RateLimit-Limit")
	nameRemaining  = []byte("X-RateLimit-Remaining")
	nameReset      = []byte("X-RateLimit-Reset")
	nameSlot       = []byte("X-Ledger-Slot")
	nameLag        = []byte("X-Ledger-Lag-Ms")
	namePartial    = []byte("X-Ledger-Partial")
	nameTag        = []byte("ETag")
	nameCaching    = []byte("Cache-Control")
	namePolicy     = []byte("Content-Security-Policy")
	nameRetryAfter = []byte("Retry-After")
)

// roundUp, added to a time or a wait before it is cut to whole seconds, rounds it up.
const roundUp = time.Second - 1

// wait returns for how long the client is asked to wait, in whole seconds.
func (x *Exchange) wait() time.Duration {
	return (max(x.retryAfter, usualRetryAfter) + roundUp).Truncate(time.Second)
}

// someAccounts, beside unknown fields, says that a list may lack accounts.
const someAccounts = ledger.FieldsShown + 1

// partialNames are what X-Ledger-Partial calls unknown fields, in the order it names them.
var partialNames = []struct {
	field ledger.Fields
	name  string
}{{ledger.FieldOwner, "owner"}, {ledger.FieldExecutable, "executable"}, {ledger.FieldRentEpoch, "rent_epoch"}, {ledger.FieldData, "data"}, {someAccounts, "accounts"}}

// appendPartial appends the names of the shown fields that are unknown, and whether a list may lack accounts.
func appendPartial(dst []byte, unknown ledger.Fields, lacks bool) []byte {
	unknown &= ledger.FieldsShown | ledger.FieldData
	if lacks {
		unknown |= someAccounts
	}
	var list encode.List
	for _, f := range partialNames {
		if unknown&f.field != 0 {
			dst = append(list.Next(dst), f.name...)
		}
	}
	return dst
}

// setHeaders sets the headers of every response, and those that go with its status. Names are set as they are: otherwise fasthttp
// would normalize each of them.
func (x *Exchange) setHeaders(h *fasthttp.ResponseHeader) {
	setFields(h, everywhere)
	policy, caching := recordPolicy, noCache
	if x.page {
		policy = wholePagePolicy
	}
	if x.immutable {
		caching = immutable
	}
	h.SetCanonical(namePolicy, policy)
	h.SetCanonical(nameCaching, caching)
	x.setNumber(nameLimit, uint64(x.allowance.Limit))
	x.setNumber(nameRemaining, uint64(x.allowance.Remaining))
	x.setNumber(nameReset, uint64(x.now.Add(x.allowance.Reset+roundUp).Unix()))
	x.setVersion(h)
	if len(x.tag) > 0 {
		h.SetCanonical(nameTag, x.tag)
	}
	switch x.status {
	case fasthttp.StatusTooManyRequests, fasthttp.StatusServiceUnavailable:
		x.setNumber(nameRetryAfter, uint64(x.wait()/time.Second))
	case fasthttp.StatusUnauthorized:
		h.Set(fasthttp.HeaderWWWAuthenticate, "Bearer")
	case fasthttp.StatusNoContent:
		if len(h.Peek(fasthttp.HeaderAccessControlAllowHeaders)) == 0 { // a door has its own
			setFields(h, preflight)
		}
	}
}

// setVersion sets the headers that name the version of the ledger that the answer is from, and what of it is not known. They are
// absent before the first block unless an import names a slot.
func (x *Exchange) setVersion(h *fasthttp.ResponseHeader) {
	if x.view.Head == nil {
		x.view = ledger.View{Head: x.server.config.Ledger.Head()}
	}
	if v := x.view; v.Head != nil && v.Head.HasSlot() {
		x.setNumber(nameSlot, uint64(v.Tip().Slot))
		x.setNumber(nameLag, uint64(max(x.now.Sub(v.Head.Since[v.Commitment]).Milliseconds(), 0)))
	}
	if x.value = appendPartial(x.value[:0], x.partial, x.view.Lacks); len(x.value) > 0 {
		h.SetCanonical(namePartial, x.value)
	}
}

// setNumber sets a response header to a number.
func (x *Exchange) setNumber(name []byte, n uint64) {
	x.value = strconv.AppendUint(x.value[:0], n, 10)
	x.ctx.Response.Header.SetCanonical(name, x.value)
}

func setFields(h *fasthttp.ResponseHeader, fields []field) {
	for i := range fields {
		h.SetCanonical(fields[i].name, fields[i].value)
	}
}
