package httpd

import (
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/wire"
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
	errOrder      = paramError("order must be newest or oldest")
	errStatus     = paramError("status must be success or failed")
	errFromSlot   = paramError("from_slot must be a plain decimal number below 2^64")
	errToSlot     = paramError("to_slot must be a plain decimal number below 2^64")
	errAfter      = paramError("after must be a signature: the base58 of exactly 64 bytes")
	errCursor     = paramError("cursor must be the next_cursor of an earlier page of this list")
	errParts      = paramError("include must be signatures or transactions")
	errDataSlice  = paramError("data_slice must be OFFSET,LENGTH: two plain decimal numbers below 2^64")
	errDataSize   = paramError("data_size must be a plain decimal number below 2^64")
	errMemcmp     = paramError("memcmp must be OFFSET:BASE58, a plain decimal number and 1 to 128 bytes, and be given at most 4 times")
	errKeys       = paramError("keys must be a comma-separated list of pubkeys: each the base58 of exactly 32 bytes")
	errKeyCount   = paramError("keys may name at most 100 pubkeys")
	errNoKeys     = paramError("keys is missing: a comma-separated list of at most 100 pubkeys")
	errPubkey     = paramError("the pubkey in the path must be the base58 of exactly 32 bytes")
	errProgram    = paramError("the program id in the path must be the base58 of exactly 32 bytes")
	errSignature  = paramError("the signature in the path must be the base58 of exactly 64 bytes")
	errSlot       = paramError("the slot in the path must be a plain decimal number below 2^64")
	errUpgrade    = paramError("this path is a WebSocket: it needs GET, HTTP/1.1, Upgrade: websocket, version 13 and a key of 16 bytes")

	errAccountParts = paramError("include must be token, data or both with a comma between them")
	errSliceAlone   = paramError("data_slice needs include=data")
	errRecentLimit  = paramError("limit must be a plain decimal number from 1 to 1000")
)

var (
	errNoRoute = &wire.Fault{Status: fasthttp.StatusNotFound, Text: "no such path"}
	errMethod  = &wire.Fault{Status: fasthttp.StatusMethodNotAllowed, Text: "only GET, HEAD and OPTIONS are answered"}
	errLimited = &wire.Fault{Status: fasthttp.StatusTooManyRequests, Text: "too many requests: wait until the window ends, cache, or use the WebSocket"}
	errConns   = &wire.Fault{Status: fasthttp.StatusTooManyRequests, Text: "this API key has as many connections as it may: use them again, or close some"}
	errKey     = &wire.Fault{Status: fasthttp.StatusUnauthorized, Text: "nobody has this API key; without one the usual limits hold"}
	errPanic   = &wire.Fault{Status: fasthttp.StatusInternalServerError, Text: "an unexpected error occurred"}
)

// usualRetryAfter is what a 503 asks clients to wait: the state it speaks of changes with every
// block.
const usualRetryAfter = time.Second

// retryAfterOf returns how long a client is to wait after an error, 0 where nobody says.
func retryAfterOf(err error) time.Duration {
	if upstream, ok := errors.AsType[*ledger.UpstreamError](err); ok {
		return min(upstream.RetryAfter, ledger.MaxRetryAfter)
	}
	return 0
}

// unavailable are the errors that are answered with 503, the more special ones first.
var unavailable = []struct {
	err     error
	details string
}{
	{ledger.ErrRecovering, "recovering"},
	{ledger.ErrNoBlock, "no block has come from the source yet"},
	{ledger.ErrMinSlot, "min_slot not reached"},
	{ledger.ErrFetching, "the account is being fetched from the upstream node, or is not at this commitment yet: try again"},
	{ledger.ErrFetchBusy, "too many accounts are being fetched from the upstream node: try again"},
	{ledger.ErrFetchFull, "the account is not held here, and this node fetches no more: it holds as many as it may"},
	{ledger.ErrUnavailable, "overloaded"},
}

// statusOf maps an error to the status it is answered with and the text for details.
// What it does not know is our own fault, and its text stays inside.
func statusOf(err error) (status int, details string) {
	if fault, ok := errors.AsType[*wire.Fault](err); ok {
		return fault.Status, fault.Text
	}
	if bad, ok := errors.AsType[paramError](err); ok {
		return fasthttp.StatusBadRequest, string(bad)
	}
	if absent, ok := errors.AsType[*ledger.NotFoundError](err); ok {
		return fasthttp.StatusNotFound, absent.Error()
	}
	if upstream, ok := errors.AsType[*ledger.UpstreamError](err); ok {
		why := "cannot be asked"
		if upstream.Busy {
			why = "is busy"
		}
		return fasthttp.StatusServiceUnavailable, "the account is not held here and the upstream node " + why + ": try again"
	}
	for _, u := range unavailable {
		if errors.Is(err, u.err) {
			return fasthttp.StatusServiceUnavailable, u.details
		}
	}
	return errPanic.Status, errPanic.Text
}
