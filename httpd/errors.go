package httpd

import (
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/wire"
)

// badRequest returns what is answered with 400: a fixed text that says what would have been right and
// never repeats what was sent.
func badRequest(text string) *wire.Fault {
	return &wire.Fault{Status: fasthttp.StatusBadRequest, Text: text}
}

var (
	errPath       = badRequest("the path has a bad escape, an escaped slash, a control byte or two dots in a row")
	errEscape     = badRequest("the query has a percent sign that is not followed by two hexadecimal digits")
	errParameters = badRequest("the query has more than 64 parameters")
	errRepeated   = badRequest("a query parameter is given more than once")
	errEmpty      = badRequest("a query parameter is empty")
	errCursor     = badRequest("cursor must be the next_cursor of an earlier page of this list")
	errSliceAlone = badRequest("data_slice needs include=data")
	errKeyCount   = badRequest("keys may name at most 100 pubkeys")
	errNoKeys     = badRequest("keys is missing: a comma-separated list of at most 100 pubkeys")
	errPubkey     = badRequest("the pubkey in the path must be the base58 of exactly 32 bytes")
	errProgram    = badRequest("the program id in the path must be the base58 of exactly 32 bytes")
	errSignature  = badRequest("the signature in the path must be the base58 of exactly 64 bytes")
	errMuchData   = badRequest("the data of these accounts is more than one answer may have here: ask for fewer of them, or for a part of the data with data_slice")
	errSlot       = badRequest("the slot in the path must be a plain decimal number below 2^64")
	errUpgrade    = badRequest("this path is a WebSocket: it needs GET, HTTP/1.1, Connection: Upgrade without close, Upgrade: websocket, version 13 and a key of 16 bytes")

	errNoRoute = &wire.Fault{Status: fasthttp.StatusNotFound, Text: "no such path"}
	errNoMints = &wire.Fault{Status: fasthttp.StatusNotFound, Text: "account not indexed: this node does not list token accounts by their mints (--index-mints)"}
	errMethod  = &wire.Fault{Status: fasthttp.StatusMethodNotAllowed, Text: "only GET, HEAD and OPTIONS are answered"}
	errLimited = &wire.Fault{Status: fasthttp.StatusTooManyRequests, Text: "too many requests: wait until the window ends, cache, or use the WebSocket"}
	errConns   = &wire.Fault{Status: fasthttp.StatusTooManyRequests, Text: "this API key has as many connections as it may: use them again, or close some"}
	errKey     = &wire.Fault{Status: fasthttp.StatusUnauthorized, Text: "nobody has this API key; without one the usual limits hold"}
	errPanic   = &wire.Fault{Status: fasthttp.StatusInternalServerError, Text: "an unexpected error occurred"}
)

// usualRetryAfter is how long a 503 asks clients to wait: the state that it reports changes with every
// block.
const usualRetryAfter = time.Second

// retryAfterOf returns how long a client is to wait after an error, 0 if the error does not say.
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

// rejection is an error of an upgrader that has a status of its own.
type rejection interface {
	error
	HTTPStatus() int
}

// statusOf maps an error to the status of the answer and the text for details.
// An unknown error is a fault of the node, and its text is not sent.
func statusOf(err error) (status int, details string) {
	if fault, ok := errors.AsType[*wire.Fault](err); ok {
		return fault.Status, fault.Text
	}
	if refused, ok := errors.AsType[rejection](err); ok {
		return refused.HTTPStatus(), refused.Error()
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
