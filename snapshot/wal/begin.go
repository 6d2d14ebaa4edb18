package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// Begin returns the end of an empty log whose first record will be next, for Open in an
// empty directory: the records before it are held elsewhere. tip is the chain's tip before it.
// Begin of record 1 is the zero End.
func Begin(next ledger.Version, tip ledger.Slot) End {
	return End{state: state{version: next - 1, slot: tip}}
}

// Remove removes a log that holds no record, so that another can begin in its place. A crash
// on the way leaves an empty log. Names that are not ours stay.
func Remove(disk vfs.FS, dir string) error {
	names, err := disk.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot list the log: %w", outOfSpace(err))
	}
	// First newest: a segment that it names must not be missing.
	for _, segments := range []bool{false, true} {
		for _, name := range names {
			if _, segment := segmentIndex(name); segment != segments || !segment && name != newestName && !isTemporary(name) {
				continue
			}
			if err := disk.Remove(filepath.Join(dir, name)); err != nil {
				return fmt.Errorf("cannot remove a log that was begun: %w", outOfSpace(err))
			}
		}
		if err := syncDir(disk, dir); err != nil {
			return err
		}
	}
	return nil
}
