package engine

import (
	"fmt"

	"ledgerd/engine/ledger"
)

// Log makes records durable, in order.
type Log interface {
	// Commit appends the records of one commit behind those before and returns once they are
	// durable, as far as the log's policy promises. Their versions increase by one.
	// After an error that matches wal.ErrNoSpace nothing was appended and the same commit may
	// be tried again; after any other nothing more may be appended: what was not
	// committed stays unseen for ever.
	Commit(records []*ledger.Record) error
	// Close syncs and closes. Nothing is called after it.
	Close() error
}

// NullLog keeps nothing: after a restart the ledger is followed from its beginning again.
type NullLog struct{}

// Commit implements Log.
func (NullLog) Commit([]*ledger.Record) error { return nil }

// Close implements Log.
func (NullLog) Close() error { return nil }

// logError says that the log failed: what was being made durable stays unseen.
type logError struct {
	slot ledger.Slot
	err  error
}

func (e *logError) Error() string {
	return fmt.Sprintf("cannot make slot %d durable: %v", e.slot, e.err)
}

func (e *logError) Unwrap() error { return e.err }
