package rpc

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"ledgerd/engine/source/upstream"
)

// cause is why a call gave no result. It decides what is done next.
type cause uint8

const (
	unreachable cause = iota // no connection
	unsent                   // its headers cannot be read now
	broken                   // it ended before the answer did
	timedOut                 // no whole answer in time
	garbage                  // what came is no answer to this call, or tells something impossible
	tooLarge                 // the answer is over its bound
	rateLimited              // the node asks to come less often
	refused                  // the node does not let us, or does not offer the method
	failed                   // the node failed at it
	notYet                   // the node is about to have it: not available yet
	behind                   // the node is behind the chain and says so
	absent                   // the slot is skipped or the block is missing: the node does not tell which
	pruned                   // the node does not keep it any more
	badVersion               // a transaction is of a version that the node may not tell us
	untold                   // what a transaction wrote is not told
	wrongParent              // the block does not build on those that came before it
)

// causes say what each means, in words and for the figures.
var causes = []struct {
	text string
	kind upstream.Kind
}{
	unreachable: {"the node cannot be reached", upstream.Dial},
	unsent:      {"the call cannot be sent", upstream.Refused},
	broken:      {"the connection ended before the answer", upstream.Closed},
	timedOut:    {"the node did not answer in time", upstream.Stalled},
	garbage:     {"the answer is not what was asked for", upstream.Garbage},
	tooLarge:    {"the answer is too large", upstream.TooLarge},
	rateLimited: {"the node limits the rate of calls", upstream.RateLimited},
	refused:     {"the node refuses the call", upstream.Refused},
	failed:      {"the node failed", upstream.Server},
	notYet:      {"the node does not have it yet", upstream.Unavailable},
	behind:      {"the node is behind", upstream.Unavailable},
	absent:      {"the node has no such block: skipped or missing", upstream.Unavailable},
	pruned:      {"the node does not keep it any more", upstream.OutOfRange},
	badVersion:  {"the block holds a transaction of a version that is not known here", upstream.Garbage},
	untold:      {"the block does not tell the balances that a transaction left", upstream.Garbage},
	wrongParent: {"the block does not build on those before it", upstream.WrongParent},
}

// callError says why a call gave no result. Its text never holds anything that came from the
// node, nor where the node is.
type callError struct {
	method string
	cause  cause
	code   int64         // of JSON-RPC or, where positive, of HTTP; 0 for none
	after  time.Duration // what the node asks to wait, 0 if it says nothing
	detail error         // of a garbage answer: which field is wrong; why a call is unsent; may be nil
}

// Error returns one sentence.
func (e *callError) Error() string {
	text := e.method + ": " + causes[e.cause].text
	if e.code != 0 {
		text += fmt.Sprintf(" (%d)", e.code)
	}
	if e.detail != nil {
		text += ": " + e.detail.Error()
	}
	return text
}

// Unwrap returns the detail.
func (e *callError) Unwrap() error { return e.detail }

// Kind and RetryAfter make it an upstream.Failure.
func (e *callError) Kind() upstream.Kind       { return causes[e.cause].kind }
func (e *callError) RetryAfter() time.Duration { return e.after }

// causeOf returns the cause of an error of this package.
func causeOf(err error) cause {
	if e, ok := errors.AsType[*callError](err); ok {
		return e.cause
	}
	return failed
}

// lost reports whether an error says that the node cannot be talked to, rather than that it does
// not have something.
func (c cause) lost() bool { return c == unreachable || c == unsent || c == broken || c == timedOut }

// isAbsence reports whether the node does not have something, as far as it says.
func (c cause) isAbsence() bool { return c == absent || c == notYet || c == pruned || c == behind }

// transportCause tells what ended an exchange. The errors of net/http name the address, and with it
// its secrets: they go no further.
func transportCause(err error) cause {
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded), ok && timeout.Timeout():
		return timedOut
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return broken
	}
	return unreachable
}

// whyUnreachable says more of why a node cannot be reached, in words that tell nothing of its address; nil if nothing more is known.
func whyUnreachable(err error) error {
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	_, isNamed := errors.AsType[x509.HostnameError](err)
	_, isUnknown := errors.AsType[x509.UnknownAuthorityError](err)
	told, isTold := errors.AsType[*net.OpError](err)
	lookup, isLookup := errors.AsType[*net.DNSError](err)
	switch {
	case isInvalid && invalid.Reason == x509.Expired:
		return errors.New("its certificate has run out, or does not hold yet")
	case isNamed:
		return errors.New("its certificate is for another name")
	case isUnknown:
		return errors.New("its certificate is of an authority that is not known here")
	case isTold && told.Op == "remote error": // an alert of TLS, of which crypto/tls has no type
		return errors.New("it turns TLS down, as where it asks for a certificate")
	case errors.Is(err, http.ErrSchemeMismatch):
		return errors.New("it does not speak TLS")
	case isLookup && lookup.IsNotFound:
		return errors.New("its name has no address")
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("nobody listens there")
	}
	return nil
}

// bodyCause tells what ended the reading of an answer that had begun.
func bodyCause(err error) cause {
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	if corrupt || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		return garbage
	}
	if c := transportCause(err); c != unreachable {
		return c
	}
	return broken
}

// httpCause tells what the status of an answer means.
func httpCause(status int) cause {
	switch {
	case status == 429:
		return rateLimited
	case status == 413:
		return tooLarge
	case status == 408 || status == 504:
		return timedOut
	case status >= 400 && status < 500, status >= 300 && status < 400:
		return refused
	}
	return failed
}

// codeCause tells what the code of an error answer means: those of Agave's JSON-RPC, rpc-client-api/src/custom_error.rs, of
// JSON-RPC 2.0, and of providers, who put those of HTTP in their place.
func codeCause(code int64) cause {
	switch code {
	case -32004, -32014, -32016, -32019: // block or status not available yet, below minContextSlot, store unreachable
		return notYet
	case -32005: // unhealthy
		return behind
	case -32007, -32009: // skipped, in the ledger or in long-term storage
		return absent
	case -32001: // cleaned up
		return pruned
	case -32015: // transaction version
		return badVersion
	case -32011, -32601, -32602, 401, 403: // no history, no such method, invalid parameters
		return refused
	case -32429, 429:
		return rateLimited
	}
	return failed
}
