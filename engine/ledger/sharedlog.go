package ledger

import "errors"

// LogPoint is where a node stands in a log: behind a record.
type LogPoint struct {
	Version   Version // of the record; 0: before the first
	StateHash StateHash
	Slot      Slot
}

// ErrDeposed says that another node became the writer of the log.
var ErrDeposed = errors.New("another node became the writer of the log")
