package geyser

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	errStalled   = errors.New("nothing came for too long")
	errNoBlock   = errors.New("no whole block came for too long")
	errReplay    = errors.New("a block builds on one that was not shown: asking for it again")
	errLost      = errors.New("the node does not show any more what is missing here")
	errWrong     = errors.New("the node contradicts itself or what is final here")
	errFillOther = errors.New("what was filled does not lead to the block that the node shows as confirmed")
)

// kindOf returns what is counted for an error of a session.
func kindOf(err error) upstream.Kind {
	var session *sessionError
	var two *yellowstone.TwoBlocksError
	switch {
	case errors.As(err, &session):
		return session.kind
	case errors.As(err, &two):
		return upstream.Equivocation
	case errors.Is(err, errStalled), errors.Is(err, errNoBlock):
		return upstream.Stalled
	case errors.Is(err, errLost):
		return upstream.OutOfRange
	case errors.Is(err, ledger.ErrTooMuchWaits):
		return upstream.TooLarge
	case errors.Is(err, errReplay), errors.Is(err, errFillOther), errors.Is(err, errWrong):
		return upstream.WrongParent
	}
	return upstream.Server
}

// explain tells what an error of grpc means; began says that the node had sent something.
func explain(err error, began bool) error {
	kind := upstream.Closed
	switch {
	case errors.Is(err, io.EOF):
		return &sessionError{kind, errors.New("the node ended the stream")}
	case errors.Is(err, context.Canceled) && status.Code(err) == codes.Unknown:
		return err
	}
	s := status.Convert(err)
	switch s.Code() {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		if !began {
			kind = upstream.Dial
		}
	case codes.Unauthenticated, codes.PermissionDenied, codes.Unimplemented:
		kind = upstream.Refused
	case codes.OutOfRange:
		kind = upstream.OutOfRange
	case codes.ResourceExhausted:
		kind = upstream.RateLimited
		if strings.HasPrefix(s.Message(), "grpc: received message") {
			kind = upstream.TooLarge
		}
	case codes.Internal:
		kind = upstream.Server
		if strings.HasPrefix(s.Message(), "grpc: ") {
			kind = upstream.Garbage // grpc itself says so, and not the node
		}
	default:
		kind = upstream.Server
	}
	return &sessionError{kind, s.Err()}
}

// refusesReplay reports whether an error may be about the slot to begin with; began says that the node had sent
// something, which may be no more than a ping.
func refusesReplay(err error, began bool) bool {
	switch status.Code(errors.Unwrap(err)) {
	case codes.OutOfRange:
		return true
	case codes.Internal, codes.InvalidArgument, codes.FailedPrecondition, codes.Unknown:
		return !began
	}
	return false
}

// fillFailure returns what is counted for a fill that failed, and what the node asks to wait.
func fillFailure(err error) (upstream.Kind, time.Duration) {
	var failure upstream.Failure
	switch {
	case errors.As(err, &failure):
		return failure.Kind(), failure.RetryAfter()
	case errors.Is(err, upstream.ErrOtherChain):
		return upstream.WrongParent, 0
	}
	return upstream.Server, 0
}

// shown returns an error as it may be logged: one line, not long, and without the token, which a
// node might repeat.
func shown(err error, token string) string {
	const most = 300
	text := err.Error()
	if s, ok := status.FromError(err); ok && s.Code() != codes.Unknown {
		text = fmt.Sprintf("%s: %s", s.Code(), s.Message())
	}
	if token != "" {
		text = strings.ReplaceAll(text, token, "***")
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}
