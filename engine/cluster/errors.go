package cluster

import (
	"errors"
	"fmt"
	"slices"

	"ledgerd/engine/ledger"
)

var (
	// ErrRecreated says that the stream is not the one that this node followed before: its ledger id is another, or
	// it is gone.
	ErrRecreated = errors.New("the stream is not the one that this node followed: it was deleted or made anew")
	// ErrShortened says that the stream ends before what this node holds.
	ErrShortened = errors.New("the stream was shortened: it ends before what this node holds")
	// ErrPurged says that the stream begins after what this node needs next: it must begin with a newer snapshot.
	ErrPurged = ledger.ErrPurged
	// ErrOtherLedger says that the stream leads elsewhere than what this node holds.
	ErrOtherLedger = errors.New("the stream holds another ledger than this node")
	// ErrUnsafe says that the stream is configured to lose messages by itself.
	ErrUnsafe = errors.New("the stream is configured to lose messages")
	// ErrOldServer says that the server that this node is connected to is too old.
	ErrOldServer = errors.New("the nats-server is too old, it must be 2.12 or newer")
	// ErrFormat says that the stream was written by a newer program.
	ErrFormat = errors.New("the stream was written by a newer program")
	// ErrClosed says that the cluster was closed.
	ErrClosed = errors.New("the connection to the cluster was closed")
)

// DamageError is a message of the stream that is refused.
type DamageError struct {
	Sequence uint64 // of the message in the stream
	Reason   string
}

// Error names the message and the reason.
func (e *DamageError) Error() string {
	return fmt.Sprintf("message %d of the stream is damaged: %s", e.Sequence, e.Reason)
}

func damaged(format string, args ...any) *DamageError {
	return &DamageError{Reason: fmt.Sprintf(format, args...)}
}

// unlikely is an error that stays if it is true, which it need not be: a server that just came to lead may not know of all yet, and one
// that comes back takes seconds to learn it.
type unlikely struct{ error }

// permanent reports whether an error stays, however often it is tried again.
func permanent(err error) bool {
	var damage *DamageError
	return errors.As(err, &damage) || slices.ContainsFunc([]error{
		ErrRecreated, ErrShortened, ErrPurged, ErrOtherLedger, ErrUnsafe, ErrOldServer, ErrFormat, ErrClosed, ledger.ErrDeposed,
	}, func(e error) bool { return errors.Is(err, e) })
}
