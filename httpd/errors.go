package httpd

import (
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
)

// paramError is answered with 400: a fixed text that says what would have been right and
// never repeats what was sent.
type paramError string

func (e paramError) Error() string { return string(e) }

const (
	errPath       = paramError("the path has a bad escape, an escaped slash, a control byte or two dots in a row")
	errEscape     = paramError("the query has a percent sign that is not followed by two hexadecimal digits")
	errRepeated   = paramError("a query parameter is given more than once")
	errEmpty      = paramError("a query parameter is empty")
	errCommitment = paramError("commitment must be processed, confirmed or finalized")
	errMinSlot    = paramError("min_slot must be a plain decimal number below 2^64")
	errWait       = paramError("wait_ms must be a plain decimal number from 0 to 2000")
	errListLimit  = paramError("limit must be a plain decimal number from 1 to 10000")
	errBefore     = paramError("before must be a signature: the base58 of exactly 64 bytes")
	errAfter      = paramError("after must be a signature: the base58 of exactly 64 bytes")
	errCursor     = paramError("cursor must be the next_cursor of an earlier page of this list")
	errInclude    = paramError("include must be signatures or transactions")
	errKeys       = paramError("keys must be a comma-separated list of pubkeys: each the base58 of exactly 32 bytes")
	errKeyCount   = paramError("keys may name at most 100 pubkeys")
	errNoKeys     = paramError("keys is missing: a comma-separated list of at most 100 pubkeys")
	errPubkey     = paramError("the pubkey in the path must be the base58 of exactly 32 bytes")
	errProgram    = paramError("the program id in the path must be the base58 of exactly 32 bytes")
	errSignature  = paramError("the signature in the path must be the base58 of exactly 64 bytes")
	errSlot       = paramError("the slot in the path must be a plain decimal number below 2^64")
	errUpgrade    = paramError("this path is a WebSocket: it needs GET, HTTP/1.1, Upgrade: websocket, version 13 and a key of 16 bytes")
	errMalformed  = paramError("the request is not well-formed HTTP/1.1 or HTTP/1.0, or its length is stated in an unsupported way")

	errRecentLimit = paramError("limit must be a plain decimal number from 1 to 1000")
)

var (
	errNoRoute = errors.New("no such path")
	errMethod  = errors.New("only GET, HEAD and OPTIONS are answered")
	errLimited = errors.New("too many requests: wait until the window ends, cache, or use the WebSocket")
	errPanic   = errors.New("an unexpected error occurred")
)

// unhealthyError is the node's own sentence about what is wrong with it.
type unhealthyError string

func (e unhealthyError) Error() string { return string(e) }

// verdictErrors says what each refused head is answered with.
var verdictErrors = map[headVerdict]error{
	headMalformed:      errMalformed,
	headLineTooLong:    errors.New("the request line is longer than 8 KiB"),
	headFieldsTooLarge: errors.New("the header fields are longer than 8 KiB"),
	headBodyTooLarge:   errors.New("the body is longer than 64 KiB; no request here needs one"),
	headTimeout:        errors.New("the request did not arrive completely in time"),
}

// verdictStatus is the status of each refused head.
var verdictStatus = map[headVerdict]int{
	headMalformed:      fasthttp.StatusBadRequest,
	headLineTooLong:    fasthttp.StatusRequestURITooLong,
	headFieldsTooLarge: fasthttp.StatusRequestHeaderFieldsTooLarge,
	headBodyTooLarge:   fasthttp.StatusRequestEntityTooLarge,
	headTimeout:        fasthttp.StatusRequestTimeout,
}

// usualPatience is what a 503 asks clients to wait: the state it speaks of changes with every
// block.
const usualPatience = time.Second

// retryAfterOf returns how long a client is to wait after an error, 0 where nobody says.
func retryAfterOf(err error) time.Duration {
	var upstream *ledger.UpstreamError
	if errors.As(err, &upstream) {
		return min(upstream.RetryAfter, ledger.MaxRetryAfter)
	}
	return 0
}

// statusOf maps an error to the status it is answered with and the text for details.
// What it does not know is our own fault, and its text stays inside.
func statusOf(err error) (status int, details string) {
	var bad paramError
	var ill unhealthyError
	var upstream *ledger.UpstreamError
	switch {
	case errors.As(err, &bad):
		return fasthttp.StatusBadRequest, string(bad)
	case errors.Is(err, errNoRoute):
		return fasthttp.StatusNotFound, errNoRoute.Error()
	case errors.Is(err, errMethod):
		return fasthttp.StatusMethodNotAllowed, errMethod.Error()
	case errors.Is(err, errLimited):
		return fasthttp.StatusTooManyRequests, errLimited.Error()
	case errors.As(err, &ill):
		return fasthttp.StatusServiceUnavailable, string(ill)
	case errors.Is(err, ledger.ErrMinSlot):
		return fasthttp.StatusServiceUnavailable, "min_slot not reached yet"
	case errors.Is(err, ledger.ErrFetching):
		return fasthttp.StatusServiceUnavailable, "the account is being fetched from the upstream node, or is not at this commitment yet: try again"
	case errors.Is(err, ledger.ErrFetchBusy):
		return fasthttp.StatusServiceUnavailable, "too many accounts are being fetched from the upstream node: try again"
	case errors.As(err, &upstream) && upstream.Busy:
		return fasthttp.StatusServiceUnavailable, "the account is not held here and the upstream node is busy: try again"
	case errors.As(err, &upstream):
		return fasthttp.StatusServiceUnavailable, "the account is not held here and the upstream node cannot be asked: try again"
	case errors.Is(err, ledger.ErrUnavailable):
		return fasthttp.StatusServiceUnavailable, "the node is recovering or overloaded: try again"
	}
	var absent *ledger.NotFoundError
	switch {
	case errors.As(err, &absent):
		return fasthttp.StatusNotFound, absent.Error()
	case errors.Is(err, ledger.ErrNotFound):
		return fasthttp.StatusNotFound, "not found"
	}
	for verdict, e := range verdictErrors {
		if errors.Is(err, e) {
			return verdictStatus[verdict], e.Error()
		}
	}
	return fasthttp.StatusInternalServerError, errPanic.Error()
}

// errorText is the fixed text of a status.
func errorText(status int) string {
	switch status {
	case fasthttp.StatusBadRequest:
		return "Invalid request parameters"
	case fasthttp.StatusNotFound:
		return "Resource not found"
	case fasthttp.StatusMethodNotAllowed:
		return "Method not allowed"
	case fasthttp.StatusRequestTimeout:
		return "Request timeout"
	case fasthttp.StatusRequestEntityTooLarge:
		return "Request body too large"
	case fasthttp.StatusRequestURITooLong:
		return "URI too long"
	case fasthttp.StatusRequestHeaderFieldsTooLarge:
		return "Request header fields too large"
	case fasthttp.StatusTooManyRequests:
		return "Rate limit exceeded"
	case fasthttp.StatusServiceUnavailable:
		return "Service unavailable"
	}
	return "Internal server error"
}

// appendError appends the error record.
func appendError(dst []byte, status int, details string) []byte {
	dst = append(dst, `{"error":"`...)
	dst = append(dst, errorText(status)...)
	dst = append(dst, `","details":`...)
	dst = appendString(dst, details)
	return append(dst, '}')
}
