package httpd

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/ratelimit"
)

// Values of response headers, as bytes so that setting them allocates nothing.
var (
	noCache   = []byte("no-cache")
	immutable = []byte("public, max-age=31536000, immutable")

	typeJSON    = []byte("application/json")
	typeMetrics = []byte("text/plain; version=0.0.4; charset=utf-8")
)

// fixedLines are the same on every response. Bodies depend on Accept-Encoding alone; no
// origin is trusted more than another, because there is nothing but public data.
const fixedLines = "\r\nAccess-Control-Allow-Origin: *" +
	"\r\nAccess-Control-Expose-Headers: X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Ledger-Slot, X-Ledger-Lag-Ms, X-Ledger-Partial, ETag, Cache-Control, Retry-After" +
	"\r\nVary: Accept-Encoding" +
	"\r\nX-Content-Type-Options: nosniff" +
	"\r\nContent-Security-Policy: default-src 'none'"

// pagePolicy is added to the policy of pages, which load files and ask the interface of their own
// origin and nothing else. A page has no script and no style but by reference.
const pagePolicy = "; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'" +
	"; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// preflightLines are on the answer to OPTIONS.
const preflightLines = "\r\nAccess-Control-Allow-Headers: If-None-Match, Content-Type, Authorization, X-API-Key, Cache-Control, traceparent" +
	"\r\nAccess-Control-Max-Age: 86400"

// appendAllowance appends what is left of the rate limit.
func appendAllowance(dst []byte, a *ratelimit.Allowance, now time.Time) []byte {
	dst = append(dst, "X-RateLimit-Limit: "...)
	dst = strconv.AppendInt(dst, int64(a.Limit), 10)
	dst = append(dst, "\r\nX-RateLimit-Remaining: "...)
	dst = strconv.AppendInt(dst, int64(a.Remaining), 10)
	dst = append(dst, "\r\nX-RateLimit-Reset: "...)
	return strconv.AppendInt(dst, now.Add(a.Reset+roundUp).Unix(), 10)
}

// roundUp, added to a time or a wait, makes its whole seconds those that it has begun.
const roundUp = time.Second - 1

// appendTip appends which version of the ledger was answered from: absent before the first
// block, unless an import names a slot.
func appendTip(dst []byte, v ledger.View, now time.Time) []byte {
	if v.Head == nil || !v.Head.HasSlot() {
		return dst
	}
	dst = append(dst, "\r\nX-Ledger-Slot: "...)
	dst = strconv.AppendUint(dst, uint64(v.Tip().Slot), 10)
	dst = append(dst, "\r\nX-Ledger-Lag-Ms: "...)
	return strconv.AppendInt(dst, max(now.Sub(v.Head.Since[v.Commitment]).Milliseconds(), 0), 10)
}

// someAccounts, beside unknown fields, says that a list may lack accounts.
const someAccounts = ledger.FieldsShown + 1

// partialNames are what X-Ledger-Partial calls unknown fields, in the order it names them.
var partialNames = []struct {
	field ledger.Fields
	name  string
}{{ledger.FieldOwner, "owner"}, {ledger.FieldExecutable, "executable"}, {ledger.FieldRentEpoch, "rent_epoch"}, {someAccounts, "accounts"}}

// appendPartial appends the shown fields that no source has told, and whether a list may lack accounts.
func appendPartial(dst []byte, unknown ledger.Fields, lacks bool) []byte {
	unknown &= ledger.FieldsShown
	if lacks {
		unknown |= someAccounts
	}
	separator := "\r\nX-Ledger-Partial: "
	for _, f := range partialNames {
		if unknown&f.field != 0 {
			dst = append(dst, separator...)
			dst = append(dst, f.name...)
			separator = ","
		}
	}
	return dst
}

// setHeaders sets what is on every response, and what goes with its status.
//
// fasthttp takes header fields one by one, looks each up among those that are there and
// searches its value for line ends, which for a dozen of them costs more than the look-up of
// an account. So all lines but the end of the last are handed to it as the name of that one:
// it writes names as they are. None of their bytes comes from a client.
func (r *request) setHeaders(h *fasthttp.ResponseHeader) {
	if r.view.Head == nil {
		r.view = ledger.View{Head: r.server.config.Ledger.Head()}
	}
	b := appendAllowance(r.lines[:0], &r.allowance, r.now)
	b = appendTip(b, r.view, r.now)
	b = appendPartial(b, r.partial, r.view.Lacks)
	if len(r.tag) > 0 {
		b = append(b, "\r\nETag: "...)
		b = append(b, r.tag...)
	}
	switch r.status {
	case fasthttp.StatusTooManyRequests, fasthttp.StatusServiceUnavailable:
		if len(h.Peek(fasthttp.HeaderRetryAfter)) == 0 { // the upgrade handler may have set one
			b = append(b, "\r\nRetry-After: "...)
			wait := max(r.retryAfter, usualRetryAfter) + roundUp
			b = strconv.AppendInt(b, int64(wait/time.Second), 10)
		}
	case fasthttp.StatusUnauthorized:
		b = append(b, "\r\nWWW-Authenticate: Bearer"...)
	case fasthttp.StatusNoContent:
		b = append(b, preflightLines...)
	}
	b = append(b, fixedLines...)
	if r.page {
		b = append(b, pagePolicy...)
	}
	r.lines = append(b, "\r\nCache-Control"...)
	caching := noCache
	if r.immutable {
		caching = immutable
	}
	h.SetCanonical(r.lines, caching)
}
