package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// ImportNote is the entry of node.json about the import that made a directory.
type ImportNote struct {
	Slot      ledger.Slot `json:"slot"`
	Blockhash string      `json:"blockhash,omitempty"`
	Complete  bool        `json:"complete,omitempty"` // there was no filter
	Finished  bool        `json:"finished"`
}

// ErrUnfinishedImport refuses a directory with an unfinished import.
var ErrUnfinishedImport = errors.New("holds an import that did not finish: where none is running, run ledgerd import again, or choose another --data-dir")

// checkImport returns ErrUnfinishedImport if the directory has an unfinished import.
func (d *Dir) checkImport() error {
	if i := d.saved.Import; i != nil && !i.Finished {
		return fmt.Errorf("data directory %s %w", d.path, ErrUnfinishedImport)
	}
	return nil
}

// OpenForImport opens a directory for an import: one that is empty, does not exist yet, or has an unfinished import.
// It removes the log and the snapshots of an unfinished import and then returns anew true.
func OpenForImport(disk vfs.FS, path string) (d *Dir, anew bool, err error) {
	names, err := disk.List(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, fmt.Errorf("cannot list the data directory: %w", err)
	}
	// A process that died before it wrote node.json leaves the lock and a temporary file.
	begun := []string{"LOCK", nodeFileName + vfs.TemporarySuffix, lostAndFound}
	if !slices.Contains(names, nodeFileName) && slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(begun, name) }) {
		return nil, false, fmt.Errorf("data directory %s is not empty: an import needs one of its own", path)
	}
	if d, err = open(disk, path, true); err != nil {
		return nil, false, err
	}
	anew = d.checkImport() != nil
	switch {
	case anew:
		err = errors.Join(vfs.Clear(disk, d.LogDir()), vfs.Clear(disk, d.SnapshotDir()))
	case !d.isNew(&d.saved):
		err = fmt.Errorf("data directory %s holds a ledger already: an import needs one of its own", path)
	}
	if err != nil {
		d.lock.Close()
		return nil, false, err
	}
	return d, anew, nil
}

// SaveImport saves the state of an import, its filter and the programs whose data it holds.
func (d *Dir) SaveImport(i ImportNote, f *ledger.Filter, data *ledger.DataPrograms) error {
	return d.update(func(n *nodeFile) error {
		n.Import, n.Filter, n.Data, n.Complete = &i, f, data, i.Complete
		return nil
	})
}

// Imported returns the note of the import that made the directory, nil if there was none.
func (d *Dir) Imported() *ImportNote { return d.content().Import }
