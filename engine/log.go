package engine

import (
	"fmt"

	"ledgerd/engine/ledger"
)

// Log makes records durable, in order. The sequencer alone calls it, from one goroutine.
// After an error from either method nothing more is appended: what was not committed
// stays unseen for ever.
type Log interface {
	// Append adds records behind those appended before. They may be buffered. Their
	// versions are the positions they take: increasing by one.
	Append(records []*ledger.Record) error
	// Commit returns once everything appended is durable.
	Commit() error
	Close() error
}

// NullLog keeps nothing: after a restart the ledger is followed from its beginning again.
type NullLog struct{}

func (NullLog) Append([]*ledger.Record) error { return nil }
func (NullLog) Commit() error                 { return nil }
func (NullLog) Close() error                  { return nil }

// logError says that the log failed: what was being made durable stays unseen.
type logError struct {
	action string
	slot   ledger.Slot
	err    error
}

func (e *logError) Error() string {
	return fmt.Sprintf("cannot %s the log at slot %d: %v", e.action, e.slot, e.err)
}

func (e *logError) Unwrap() error { return e.err }
