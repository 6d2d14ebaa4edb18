package geyser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/upstream"
	"ledgerd/engine/source/yellowstone"
)

// sessionError is what ended a session.
type sessionError struct {
	kind upstream.Kind
	err  error
}

func (e *sessionError) Error() string { return e.err.Error() }
func (e *sessionError) Unwrap() error { return e.err }

// Why sessions are ended by us.
var (
	errStalled   = ended(upstream.Stalled, "nothing came for too long")
	errNoBlock   = ended(upstream.Stalled, "no whole block came for too long")
	errReplay    = ended(upstream.WrongParent, "a block builds on one that was not shown: asking for it again")
	errLost      = ended(upstream.OutOfRange, "the node does not show any more what is missing here")
	errWrong     = ended(upstream.WrongParent, "the node contradicts itself or what is final here")
	errFillOther = ended(upstream.WrongParent, "what was filled does not lead to the block that the node shows as confirmed")
)

func ended(kind upstream.Kind, why string) error { return &sessionError{kind, errors.New(why)} }

// kindOf returns what is counted for an error of a session.
func kindOf(err error) upstream.Kind {
	var session *sessionError
	switch {
	case errors.Is(err, ledger.ErrTooMuchWaits): // beside errWrong
		return upstream.TooLarge
	case errors.As(err, &session):
		return session.kind
	case errors.Is(err, yellowstone.ErrTwoBlocks):
		return upstream.Equivocation
	}
	return upstream.Server
}

// codeKinds are what status codes of the node mean; others mean that it failed.
var codeKinds = map[codes.Code]upstream.Kind{
	codes.Unavailable: upstream.Closed, codes.DeadlineExceeded: upstream.Closed, codes.Canceled: upstream.Closed,
	codes.Unauthenticated: upstream.Refused, codes.PermissionDenied: upstream.Refused, codes.Unimplemented: upstream.Refused,
	codes.OutOfRange: upstream.OutOfRange, codes.ResourceExhausted: upstream.RateLimited,
}

// tooManyCalls is how grpc tells that a proxy answered with 429 for the node (internal/transport/http2_client.go), which it takes for UNAVAILABLE.
const tooManyCalls = "HTTP status code received from server: 429 "

// explain says why the connection is no use any more.
func (c *connection) explain(err error) error {
	if cause := context.Cause(c.ctx); cause != nil {
		err = cause
	}
	switch {
	case err == errStalled:
		return err
	case errors.Is(err, io.EOF):
		return &sessionError{upstream.Closed, errors.New("the node ended the stream")}
	case errors.Is(err, context.Canceled) && status.Code(err) == codes.Unknown:
		return err
	}
	s := status.Convert(err)
	kind, known := codeKinds[s.Code()]
	local := strings.HasPrefix(s.Message(), "grpc: ") // grpc itself says so, and not the node
	switch {
	case local && s.Code() == codes.ResourceExhausted:
		kind = upstream.TooLarge
	case local && s.Code() == codes.Internal:
		kind = upstream.Garbage
	case !known:
		kind = upstream.Server
	case strings.Contains(s.Message(), tooManyCalls):
		kind = upstream.RateLimited
	case kind == upstream.Closed && c.received.Load() == 0:
		kind = upstream.Dial
	}
	return &sessionError{kind, s.Err()}
}

// said returns what a node said to end a call; code is OK where it did not.
func said(err error) (code codes.Code, message string) {
	s, ok := status.FromError(errors.Unwrap(err))
	if err == nil || !ok {
		return codes.OK, ""
	}
	return s.Code(), s.Message()
}

// refusesReplay reports whether an error is about the slot to begin with, or may be: the node had shown nothing, beside pings.
// Yellowstone's plugin answers OUT_OF_RANGE since April 2026, and INTERNAL before and where it keeps nothing, or nothing yet from there on.
// Richat answers INVALID_ARGUMENT.
func refusesReplay(err error, shown bool) (sure, maybe bool) {
	code, message := said(err)
	sure = code == codes.OutOfRange || (code == codes.Internal || code == codes.InvalidArgument) && refusedReplay.MatchString(message)
	unclear := []codes.Code{codes.Internal, codes.InvalidArgument, codes.FailedPrecondition, codes.Unknown}
	return sure, !shown && slices.Contains(unclear, code)
}

// refusesRequests reports whether an error may be about a request for filters that was not the first of its call.
func refusesRequests(err error) bool {
	code, _ := said(err)
	sure, _ := refusesReplay(err, true)
	return sure && code != codes.OutOfRange || slices.Contains([]codes.Code{codes.InvalidArgument, codes.FailedPrecondition, codes.Unimplemented}, code)
}

// refusesSlices reports whether an error says that the subscription has more slices of data than the node sends (Yellowstone's filter
// limits; two in its sample configuration).
func refusesSlices(err error) bool {
	code, message := said(err)
	return code == codes.InvalidArgument && strings.Contains(message, "slice")
}

// refusedReplay matches what they say: "from_slot is not supported", "broadcast from 7 is not available, last available: 9" and "failed to get replay
// response" Yellowstone's plugin (grpc.rs), "failed to get replay position for slot 7" Richat (richat/src/channel.rs), "first available slot: 9" its plugin.
var refusedReplay = regexp.MustCompile(`from_slot|broadcast from \d+ is not available|failed to get replay|first available slot`)

// fillFailure returns what is counted for a fill that failed, and what the node asks to wait.
func fillFailure(err error) (upstream.Kind, time.Duration) {
	if failure, ok := errors.AsType[upstream.Failure](err); ok {
		return failure.Kind(), failure.RetryAfter()
	}
	return upstream.Server, 0
}

// shown returns an error as it may be logged: one line, not long, and without secrets, which a
// node might repeat.
func shown(err error, secrets []string) string {
	const most = 300
	text := err.Error()
	if s, ok := status.FromError(err); ok && s.Code() != codes.Unknown {
		text = fmt.Sprintf("%s: %s", s.Code(), s.Message())
	}
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}
