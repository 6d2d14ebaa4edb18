package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// Begin returns the end of a log that holds nothing yet and goes on with the record next, for Open in an
// empty directory: what comes before that record is held elsewhere. tip is the chain's tip before it.
// Begin of record 1 is the zero End.
func Begin(next ledger.Version, tip ledger.Slot) End {
	return End{state: state{version: next - 1, slot: tip}}
}

// Remove takes a log away that holds no record, so that another can begin in its place. After a crash
// on the way what is left is an empty log. Names that are not ours stay.
func Remove(disk vfs.FS, dir string) error {
	indexes, others, err := list(disk, dir)
	if err != nil || len(indexes)+len(others) == 0 {
		return err
	}
	var first []string // a segment that newest names must not be missing
	var last []string
	for _, name := range others {
		if name == newestName || isTemporary(name) {
			first = append(first, name)
		}
	}
	for _, index := range indexes {
		last = append(last, filepath.Base(segmentName(dir, index)))
	}
	for _, names := range [][]string{first, last} {
		for _, name := range names {
			if err := disk.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("cannot remove a log that was begun: %w", outOfSpace(err))
			}
		}
		if err := syncDir(disk, dir); err != nil {
			return err
		}
	}
	return nil
}
