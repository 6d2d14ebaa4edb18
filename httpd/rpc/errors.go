package rpc

import (
	"errors"
	"fmt"
	"strconv"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
	"ledgerd/httpd/stream"
)

// Codes of errors, as errors/codes.yaml of the specification has them.
const (
	codeParse          = -32700
	codeRequest        = -32600
	codeMethod         = -32601
	codeParams         = -32602
	codeInternal       = -32603
	codeCleanedUp      = -32001
	codeNotAvailable   = -32004
	codeUnhealthy      = -32005
	codeSkipped        = -32007
	codeExcluded       = -32010
	codeScan           = -32012
	codeMinContextSlot = -32016
	codeLongTerm       = -32019
	codeFilterNotFound = -32020
	codeResync         = -32050 // one of our own
)

// callError is the error of a call.
type callError struct {
	code    int
	message string
	data    string // JSON; empty: none
	// elsewhere: another node may be able to answer. Where none can be asked, this is the answer.
	elsewhere bool
}

// Error returns the message.
func (e *callError) Error() string { return e.message }

// badParams says what is wrong with the parameters of a call.
func badParams(format string, values ...any) error {
	return &callError{code: codeParams, message: "Invalid params: " + fmt.Sprintf(format, values...)}
}

// elsewhere says what the node cannot answer by itself.
func elsewhere(code int, format string, values ...any) error {
	return &callError{code: code, message: fmt.Sprintf(format, values...), elsewhere: true}
}

// unhealthy is the error of a node that cannot be asked now, and does not know how far it is behind.
func unhealthy(why string) error {
	return &callError{code: codeUnhealthy, message: "Node is unhealthy: " + why, data: `{"numSlotsBehind":null}`}
}

// errorOf returns what a call is answered with after an error, with the view that the error came with.
func errorOf(err error, v ledger.View) *callError {
	if own, ok := errors.AsType[*callError](err); ok {
		return own
	}
	if held, ok := errors.AsType[*stream.Resync](err); ok {
		return &callError{code: codeResync, message: held.Error(), data: fmt.Sprintf(`{"oldestSeq":%d,"newestSeq":%d}`, held.Oldest, held.Newest)}
	}
	switch {
	case errors.Is(err, ledger.ErrMinSlot):
		if v.Head == nil {
			return minContextSlot(0)
		}
		return minContextSlot(v.Tip().Slot)
	case errors.Is(err, ledger.ErrRecovering):
		return errorOf(unhealthy("it recovers"), v)
	case errors.Is(err, ledger.ErrNoBlock):
		return errorOf(unhealthy("no block has come from its source yet"), v)
	case errors.Is(err, stream.ErrManyTopics):
		return &callError{code: codeInternal, message: "Internal Error: Subscription refused. Node subscription limit reached"}
	case errors.Is(err, ledger.ErrUnavailable):
		return &callError{code: codeInternal, message: "Internal error: the node is overloaded, try again"}
	}
	return &callError{code: codeInternal, message: "Internal error"}
}

// minContextSlot says that a node stands at a slot before the minContextSlot of a call.
func minContextSlot(at ledger.Slot) *callError {
	return &callError{code: codeMinContextSlot, message: "Minimum context slot has not been reached",
		data: fmt.Sprintf(`{"contextSlot":%d}`, at)}
}

// appendError appends the answer that is an error, without the id that ends it.
func appendError(dst []byte, e *callError) []byte {
	return appendFault(append(dst, `{"jsonrpc":"2.0","error":`...), e)
}

// appendFault appends the object that says what is wrong.
func appendFault(dst []byte, e *callError) []byte {
	dst = strconv.AppendInt(append(dst, `{"code":`...), int64(e.code), 10)
	dst = encode.AppendString(append(dst, `,"message":`...), e.message)
	if e.data != "" {
		dst = append(append(dst, `,"data":`...), e.data...)
	}
	return append(dst, '}')
}

// AppendError appends the error of an exchange that is no call: the status of HTTP is its code.
func (d *Door) AppendError(dst []byte, status int, text string) []byte {
	return append(appendError(dst, &callError{code: status, message: text}), `,"id":null}`...)
}
