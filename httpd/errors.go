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
	errAfter      = paramError("after must be a signature: the base58 of exactly 64 bytes")
	errCursor     = paramError("cursor must be the next_cursor of an earlier page of this list")
	errParts      = paramError("include must be signatures or transactions")
	errToken      = paramError("include must be token")
	errKeys       = paramError("keys must be a comma-separated list of pubkeys: each the base58 of exactly 32 bytes")
	errKeyCount   = paramError("keys may name at most 100 pubkeys")
	errNoKeys     = paramError("keys is missing: a comma-separated list of at most 100 pubkeys")
	errPubkey     = paramError("the pubkey in the path must be the base58 of exactly 32 bytes")
	errProgram    = paramError("the program id in the path must be the base58 of exactly 32 bytes")
	errSignature  = paramError("the signature in the path must be the base58 of exactly 64 bytes")
	errSlot       = paramError("the slot in the path must be a plain decimal number below 2^64")
	errUpgrade    = paramError("this path is a WebSocket: it needs GET, HTTP/1.1, Upgrade: websocket, version 13 and a key of 16 bytes")

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

// usualRetryAfter is what a 503 asks clients to wait: the state it speaks of changes with every
// block.
const usualRetryAfter = time.Second

// retryAfterOf returns how long a client is to wait after an error, 0 where nobody says.
func retryAfterOf(err error) time.Duration {
	var upstream *ledger.UpstreamError
	if errors.As(err, &upstream) {
		return min(upstream.RetryAfter, ledger.MaxRetryAfter)
	}
	return 0
}

// known are the errors with a status and a text of their own, the more special ones first.
var known = []struct {
	err     error
	status  int
	details string
}{
	{errNoRoute, fasthttp.StatusNotFound, errNoRoute.Error()},
	{errMethod, fasthttp.StatusMethodNotAllowed, errMethod.Error()},
	{errLimited, fasthttp.StatusTooManyRequests, errLimited.Error()},
	{ledger.ErrRecovering, fasthttp.StatusServiceUnavailable, "recovering"},
	{ledger.ErrNoBlock, fasthttp.StatusServiceUnavailable, "no block has come from the source yet"},
	{ledger.ErrMinSlot, fasthttp.StatusServiceUnavailable, "min_slot not reached"},
	{ledger.ErrFetching, fasthttp.StatusServiceUnavailable, "the account is being fetched from the upstream node, or is not at this commitment yet: try again"},
	{ledger.ErrFetchBusy, fasthttp.StatusServiceUnavailable, "too many accounts are being fetched from the upstream node: try again"},
	{ledger.ErrUnavailable, fasthttp.StatusServiceUnavailable, "overloaded"},
	{ledger.ErrNotFound, fasthttp.StatusNotFound, "not found"},
}

// statusOf maps an error to the status it is answered with and the text for details.
// What it does not know is our own fault, and its text stays inside.
func statusOf(err error) (status int, details string) {
	if status := wire.Status(err); status != 0 {
		return status, err.Error()
	}
	var bad paramError
	var ill unhealthyError
	var upstream *ledger.UpstreamError
	var absent *ledger.NotFoundError
	switch {
	case errors.As(err, &bad):
		return fasthttp.StatusBadRequest, string(bad)
	case errors.As(err, &ill):
		return fasthttp.StatusServiceUnavailable, string(ill)
	case errors.As(err, &absent):
		return fasthttp.StatusNotFound, absent.Error()
	case errors.As(err, &upstream) && upstream.Busy:
		return fasthttp.StatusServiceUnavailable, "the account is not held here and the upstream node is busy: try again"
	case errors.As(err, &upstream):
		return fasthttp.StatusServiceUnavailable, "the account is not held here and the upstream node cannot be asked: try again"
	}
	for _, k := range known {
		if errors.Is(err, k.err) {
			return k.status, k.details
		}
	}
	return fasthttp.StatusInternalServerError, errPanic.Error()
}
