package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

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

// unfinished reports whether there is an unfinished import.
func (n *ImportNote) unfinished() bool { return n != nil && !n.Finished }

// ErrUnfinishedImport refuses a directory with an unfinished import.
var ErrUnfinishedImport = errors.New("holds an import that did not finish: where none is running, run ledgerd import again, or choose another --data-dir")

// CheckImport returns ErrUnfinishedImport for a directory with an unfinished import, also one that is still
// running. It takes no lock and reports nothing else that is wrong with the directory.
func CheckImport(path string) error {
	d := &Dir{fs: vfs.Disk{}, path: path}
	content, err := readFile(d.fs, d.file())
	if err != nil {
		return nil
	}
	if err := json.Unmarshal(content, &d.node); err == nil && d.node.Import.unfinished() {
		return fmt.Errorf("data directory %s %w", path, ErrUnfinishedImport)
	}
	return nil
}

// OpenForImport opens a directory for an import: one that is empty, does not exist yet, or has an unfinished import.
// It removes an unfinished import and then returns anew true.
func OpenForImport(path string) (d *Dir, anew bool, err error) {
	return OpenForImportOn(vfs.Disk{}, path)
}

// OpenForImportOn is OpenForImport on a given disk.
func OpenForImportOn(disk vfs.FS, path string) (d *Dir, anew bool, err error) {
	names, err := disk.List(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, fmt.Errorf("cannot list the data directory: %w", err)
	}
	// A process that died before it wrote node.json leaves the lock and a temporary file.
	begun := func(name string) bool {
		return name == "LOCK" || name == "node.json"+vfs.TemporarySuffix || name == lostAndFound
	}
	if !slices.Contains(names, "node.json") && slices.ContainsFunc(names, func(name string) bool { return !begun(name) }) {
		return nil, false, fmt.Errorf("data directory %s is not empty: an import needs one of its own", path)
	}
	if d, err = open(disk, path); err != nil {
		return nil, false, err
	}
	anew = d.node.Import.unfinished()
	switch {
	case anew:
		err = d.clearImport()
	case !d.isNew(&d.node):
		err = fmt.Errorf("data directory %s holds a ledger already: an import needs one of its own", path)
	}
	if err != nil {
		d.lock.Close()
		return nil, false, err
	}
	return d, anew, nil
}

// clearImport removes the files of an unfinished import.
func (d *Dir) clearImport() error {
	names, err := d.fs.List(d.path)
	if err != nil {
		return fmt.Errorf("cannot list the data directory: %w", err)
	}
	dirs := []string{d.LogDir(), d.SnapshotDir()}
	for _, name := range names {
		if strings.HasPrefix(name, importPrefix) {
			dirs = append(dirs, filepath.Join(d.path, name))
		}
	}
	for _, dir := range dirs {
		if err := vfs.Clear(d.fs, dir); err != nil {
			return err
		}
		_ = d.fs.Remove(dir) // an empty folder may stay
	}
	return nil
}

// importPrefix is the prefix of the folders in which an import sorts.
const importPrefix = "import-"

// ImportDir returns the folder in which an import sorts rows of a kind.
func (d *Dir) ImportDir(kind string) string { return filepath.Join(d.path, importPrefix+kind) }

// SaveImport saves the state of an import and its filter.
func (d *Dir) SaveImport(i ImportNote, f *ledger.Filter) error {
	return d.update(func(n *nodeFile) error {
		n.Import, n.Filter, n.Complete = &i, f, i.Complete
		return nil
	})
}

// Imported returns the note of the import that made the directory, nil if there was none.
func (d *Dir) Imported() *ImportNote { return d.content().Import }
