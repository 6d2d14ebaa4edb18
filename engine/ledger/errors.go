package ledger

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound says that the node does not hold what a query names. Errors with the reason are
	// of type *NotFoundError and match it.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable says that a query cannot be answered now and may be
	// repeated: a full mailbox, a missed deadline, a version that was folded meanwhile.
	ErrUnavailable = errors.New("unavailable")
	// ErrRecovering says that the node answers no query before it has loaded what it held, or its first base
	// state. It matches ErrUnavailable.
	ErrRecovering = fmt.Errorf("recovering: %w", ErrUnavailable)
	// ErrNoBlock says that the node holds no state, and that no block has come from its source yet. It
	// matches ErrUnavailable.
	ErrNoBlock = fmt.Errorf("no block has come from the source yet: %w", ErrUnavailable)
	// ErrMinSlot says that the min_slot of a query was not reached in time.
	// It matches ErrUnavailable.
	ErrMinSlot = fmt.Errorf("min_slot not reached: %w", ErrUnavailable)
	// ErrFetching says that an account which is not held is being fetched from the upstream node, and
	// did not come in time. It matches ErrUnavailable.
	ErrFetching = fmt.Errorf("the account is being fetched from the node: %w", ErrUnavailable)
	// ErrFetchBusy says that too many accounts are being fetched already. It matches
	// ErrUnavailable.
	ErrFetchBusy = fmt.Errorf("too many accounts are being fetched from the node: %w", ErrUnavailable)
	// ErrFetchFull says that the node holds as many accounts as it may, so that none is fetched any more. It
	// matches ErrUnavailable.
	ErrFetchFull = fmt.Errorf("no more accounts are fetched from the node: %w", ErrUnavailable)
	// ErrCorrupt says that bytes are not a valid encoding.
	ErrCorrupt = errors.New("corrupt encoding")
)

// Absence is the reason why something is not held.
type Absence uint8

const (
	AccountNotFound       Absence = iota // no live account has the key
	AccountNotIndexed                    // not held, and only part of the ledger is
	AccountClosed                        // closed at Slot, the tombstone is still held
	TransactionNotFound                  // no transaction held has the signature
	TransactionNotIndexed                // likewise, on a node that holds no votes
	TransactionLost                      // likewise, and it may be in a file of history that cannot be read, or is damaged
	TransactionNotYet                    // the one that has the signature is in a block that has not reached the commitment level
	SlotSkipped                          // a child's parent link proves that the slot has no block
	SlotNotYetProduced                   // above the newest block of the commitment level
	SlotPruned                           // was held once, now below retention
	SlotNotIndexed                       // below the root, at or below an import, or in a gap of a partial source
	OwnerNotFound                        // neither an account at the key nor anything it owns
	OwnerNotIndexed                      // likewise, on a node that holds only part of the ledger
	NoBlockYet                           // nothing has been published
)

// NotFoundError is an ErrNotFound that says why.
type NotFoundError struct {
	Absence Absence
	Slot    Slot // with AccountClosed: where it was closed
}

// Error returns the text that the HTTP interface shows in details.
func (e *NotFoundError) Error() string {
	if e.Absence == AccountClosed {
		return fmt.Sprintf("account closed at slot %d", e.Slot)
	}
	return absenceTexts[e.Absence]
}

var absenceTexts = [...]string{
	AccountNotFound:       "account not found",
	AccountNotIndexed:     "account not indexed: this node holds only part of the ledger",
	TransactionNotFound:   "transaction not held: unknown, orphaned or pruned",
	TransactionNotIndexed: "transaction not held: unknown, orphaned, pruned or a vote: votes are not indexed here",
	TransactionLost:       "transaction not held: unknown, orphaned, pruned or not indexed: a file of history cannot be read, or is damaged",
	TransactionNotYet:     "transaction held, and not yet at this commitment",
	SlotSkipped:           "slot skipped: no block was produced in it",
	SlotNotYetProduced:    "slot not yet produced at this commitment",
	SlotPruned:            "slot pruned: below the node's retention",
	SlotNotIndexed:        "slot not indexed: this node does not hold it",
	OwnerNotFound:         "neither an account at this key nor anything it owns is known",
	OwnerNotIndexed:       "account not indexed: neither it nor anything it owns is held, and this node holds only part of the ledger",
	NoBlockYet:            "no block yet",
}

// Is makes every NotFoundError match ErrNotFound.
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }
