package snapshot

import (
	"errors"
	"fmt"

	"ledgerd/snapshot/vfs"
)

// ErrDamaged says that a file is not what was once written. The snapshot cannot be used; an
// older one may be whole. Errors that name the place are of type *DamagedError and match it.
var ErrDamaged = errors.New("damaged")

// ErrState says that the accounts and mints in a snapshot, or those to be written to one, have another state hash than
// expected although every checksum is right: they were wrong before they were written.
var ErrState = errors.New("another state hash")

// DamagedError names the place where a file is damaged.
type DamagedError struct {
	File   string // its name in the store's directory
	Offset int64  // of the part that fails its check, in bytes
	Reason string
}

// Error names file, place and reason.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d: %s", e.File, e.Offset, e.Reason)
}

// Is makes every DamagedError match ErrDamaged.
func (e *DamagedError) Is(target error) bool { return target == ErrDamaged }

// FormatError says that a newer program wrote a file of the store; File is its name in the directory.
type FormatError = vfs.FormatError
