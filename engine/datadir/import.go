package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"ledgerd/engine/gather"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// ImportNote is what node.json says of the import that made a directory.
type ImportNote struct {
	Slot      ledger.Slot `json:"slot"`
	Blockhash string      `json:"blockhash,omitempty"`
	Complete  bool        `json:"complete,omitempty"` // no filter left out any account of the archive
	Finished  bool        `json:"finished"`
}

// filterNote is what node.json says of the filter that a directory was begun with.
type filterNote struct {
	Owners   string `json:"owners,omitempty"` // as ledger.JoinKeys writes them, in order
	Accounts string `json:"accounts,omitempty"`
}

func noteOf(f *ledger.Filter) *filterNote {
	if f == nil {
		return nil
	}
	return &filterNote{ledger.JoinKeys(f.Owners()), ledger.JoinKeys(f.Accounts())}
}

// filter is the inverse of noteOf.
func (n *filterNote) filter() (*ledger.Filter, error) {
	if n == nil {
		return nil, nil
	}
	owners, err := ledger.SplitKeys(n.Owners)
	if err != nil {
		return nil, err
	}
	accounts, err := ledger.SplitKeys(n.Accounts)
	return ledger.NewFilter(owners, accounts), err
}

// same reports whether two filters hold the same.
func (n *filterNote) same(o *filterNote) bool {
	return n == o || n != nil && o != nil && *n == *o
}

// flags tells a filter as an operator would give it, shortened.
func (n *filterNote) flags() string {
	if n == nil {
		return "without filters"
	}
	var flags []string
	for _, f := range []struct{ name, keys string }{{"--index-owners", n.Owners}, {"--index-accounts", n.Accounts}} {
		keys := strings.Split(f.keys, ",")
		switch {
		case f.keys == "":
			continue
		case len(keys) > 4:
			f.keys = fmt.Sprintf("%s,… (%d keys)", strings.Join(keys[:4], ","), len(keys))
		}
		flags = append(flags, f.name+" "+f.keys)
	}
	return "with " + strings.Join(flags, " ")
}

// BindFilter ties the directory to the accounts it holds, or refuses others: what is held depends
// on the filter from the first record on. It comes before BindSource.
func (d *Dir) BindFilter(f *ledger.Filter) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	wanted, held := noteOf(f), d.node.Filter
	if wanted.same(held) {
		return nil
	}
	if !d.isNewLocked() {
		return fmt.Errorf("data directory %s was begun %s: give the same --index-owners and --index-accounts, or choose another --data-dir", d.path, held.flags())
	}
	node := d.node
	node.Filter = wanted
	if err := d.replaceLocked(node); err != nil {
		return err
	}
	d.filter = f
	return nil
}

// BindVotes ties the directory to whether vote transactions are held, or refuses the other: it would answer
// for some blocks with votes and for some without. It comes after BindSource.
func (d *Dir) BindVotes(skip bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch held := d.node.SkipVotes; {
	case held == nil:
		node := d.node
		node.SkipVotes = &skip
		return d.replaceLocked(node)
	case *held == skip:
		return nil
	case skip:
		return fmt.Errorf("data directory %s was begun without --skip-votes: leave it out, or choose another --data-dir", d.path)
	}
	return fmt.Errorf("data directory %s was begun with --skip-votes: give it again, or choose another --data-dir", d.path)
}

// SkipsVotes reports whether vote transactions are not held.
func (d *Dir) SkipsVotes() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.node.SkipVotes != nil && *d.node.SkipVotes
}

// Filter returns the filter that the directory is tied to, nil if it holds all accounts.
func (d *Dir) Filter() *ledger.Filter {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.filter
}

// isNewLocked reports whether nothing was ever begun in the directory.
func (d *Dir) isNewLocked() bool {
	n := &d.node
	return n.Source == nil && n.Root == "" && n.Import == nil && n.Filter == nil && d.mustBeNew() == nil
}

// Imported returns what is known of the import that made the directory, nil if there was none.
func (d *Dir) Imported() *ImportNote {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.node.Import
}

// ErrUnfinishedImport refuses what an import left that was killed.
var ErrUnfinishedImport = errors.New("holds an import that did not finish: where none is running, run ledgerd import again, or choose another --data-dir")

// CheckImport returns an error for a directory that holds an import which did not finish, be it that it is going
// on. It takes no lock and says nothing of what else is wrong with the directory.
func CheckImport(path string) error {
	d := &Dir{fs: vfs.Disk{}, path: path}
	content, err := readFile(d.fs, d.file())
	if err != nil {
		return nil
	}
	if err := json.Unmarshal(content, &d.node); err == nil && d.node.Import != nil && !d.node.Import.Finished {
		return fmt.Errorf("data directory %s %w", path, ErrUnfinishedImport)
	}
	return nil
}

// OpenForImport opens a directory that an import may fill: one that is empty or is not there yet, or
// that holds an import which did not finish. That is removed, and told by the second result.
func OpenForImport(path string) (d *Dir, anew bool, err error) {
	return OpenForImportOn(vfs.Disk{}, path)
}

// OpenForImportOn is OpenForImport on any disk.
func OpenForImportOn(disk vfs.FS, path string) (d *Dir, anew bool, err error) {
	names, err := disk.List(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, fmt.Errorf("cannot list the data directory: %w", err)
	}
	// What died before it could name the node leaves the lock, and what was to become node.json.
	begun := func(name string) bool {
		return name == "LOCK" || name == "node.json"+vfs.TemporarySuffix || name == lostAndFound
	}
	if !slices.Contains(names, "node.json") && slices.ContainsFunc(names, func(name string) bool { return !begun(name) }) {
		return nil, false, fmt.Errorf("data directory %s is not empty: an import needs one of its own", path)
	}
	if d, err = open(disk, path); err != nil {
		return nil, false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	unfinished := d.node.Import != nil && !d.node.Import.Finished
	switch {
	case unfinished:
		err = d.clearImport()
	case !d.isNewLocked():
		err = fmt.Errorf("data directory %s holds a ledger already: an import needs one of its own", path)
	}
	if err != nil {
		d.lock.Close()
		return nil, false, err
	}
	return d, unfinished, nil
}

// clearImport removes what an import may have left.
func (d *Dir) clearImport() error {
	dirs := []string{d.LogDir(), d.SnapshotDir()}
	names, err := d.fs.List(d.path)
	if err != nil {
		return fmt.Errorf("cannot list the data directory: %w", err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, importPrefix) {
			dirs = append(dirs, filepath.Join(d.path, name))
		}
	}
	for _, dir := range dirs {
		if err := gather.Clear(d.fs, dir); err != nil {
			return err
		}
		_ = d.fs.Remove(dir) // empty, and in nobody's way
	}
	return nil
}

// importPrefix begins the names of the folders in which an import sorts.
const importPrefix = "import-"

// ImportDir returns the folder in which an import sorts rows of a kind.
func (d *Dir) ImportDir(kind string) string { return filepath.Join(d.path, importPrefix+kind) }

// SaveImport saves how far an import is, and the filter that it applies.
func (d *Dir) SaveImport(n ImportNote, f *ledger.Filter) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	node := d.node
	node.Import, node.Filter, node.Complete = &n, noteOf(f), n.Complete
	if err := d.replaceLocked(node); err != nil {
		return err
	}
	d.filter = f
	return nil
}
