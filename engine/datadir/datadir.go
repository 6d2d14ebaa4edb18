package datadir

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// Dir is a node's data directory. It belongs to one process at a time and to one ledger
// for ever: node.json in it names the node, the source's identity and the root block.
// Beside it lie the folders log and snapshots, and those of what a node of a cluster set aside.
type Dir struct {
	fs   vfs.FS
	path string
	lock io.Closer

	mu     sync.Mutex
	node   nodeFile
	filter *ledger.Filter // as node says
}

// nodeFile is the content of node.json. Checksum is the CRC32C, in hexadecimal, of the same
// content without it: what was changed by hand or by the disk is refused.
type nodeFile struct {
	Checksum string  `json:"checksum,omitempty"`
	NodeID   string  `json:"node_id"`
	Source   *string `json:"source_identity,omitempty"` // absent before the first source
	Complete bool    `json:"complete,omitempty"`        // the source shows every account of its ledger
	Root     string  `json:"root_blockhash,omitempty"`  // absent before the first block
	Statuses bool    `json:"statuses,omitempty"`        // the source spoke of finality
	Gaps     bool    `json:"gaps,omitempty"`            // a source was to pass over missing blocks

	Import  *ImportNote  `json:"import,omitempty"`  // absent where no import made the directory
	Filter  *filterNote  `json:"filter,omitempty"`  // absent where all accounts are held
	Cluster *clusterNote `json:"cluster,omitempty"` // absent where the node is alone
	// SettingAside: what the directory holds is being set aside, and nothing of it counts any more.
	SettingAside bool `json:"setting_aside,omitempty"`
	// SkipVotes: vote transactions are not held. Absent before the first source, and where a directory was
	// begun when that was not noted.
	SkipVotes *bool `json:"skip_votes,omitempty"`
}

// Open creates the directory if need be and locks it until Close. The lock dies with
// the process, however it ends.
func Open(path string) (*Dir, error) { return OpenOn(vfs.Disk{}, path) }

// OpenOn is Open on any disk.
func OpenOn(disk vfs.FS, path string) (*Dir, error) {
	d, err := open(disk, path)
	if err == nil && d.node.Import != nil && !d.node.Import.Finished {
		d.lock.Close()
		return nil, fmt.Errorf("data directory %s %w", path, ErrUnfinishedImport)
	}
	return d, err
}

// open opens a directory whatever it holds.
func open(disk vfs.FS, path string) (*Dir, error) {
	if err := disk.MkdirAll(path); err != nil {
		return nil, fmt.Errorf("cannot create data directory: %w", err)
	}
	lock, err := disk.Lock(filepath.Join(path, "LOCK"))
	if errors.Is(err, vfs.ErrLocked) {
		return nil, fmt.Errorf("data directory %s is in use by another process", path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock the data directory: %w", err)
	}
	d := &Dir{fs: disk, path: path, lock: lock}
	if err := d.load(); err != nil {
		lock.Close()
		return nil, err
	}
	if d.node.SettingAside { // a crash ended it
		if err := d.finishSettingAsideLocked(); err != nil { // nobody else has d yet
			lock.Close()
			return nil, err
		}
	}
	return d, nil
}

// Close gives the directory free.
func (d *Dir) Close() error { return d.lock.Close() }

// LogDir returns where the log of a data directory lies.
func LogDir(path string) string { return filepath.Join(path, "log") }

// SnapshotDir returns where the snapshots of a data directory lie.
func SnapshotDir(path string) string { return filepath.Join(path, "snapshots") }

// FS returns the disk that the directory lies on.
func (d *Dir) FS() vfs.FS { return d.fs }

// Path returns where the directory lies on its disk.
func (d *Dir) Path() string { return d.path }

// LogDir returns where the directory's log lies.
func (d *Dir) LogDir() string { return LogDir(d.path) }

// SnapshotDir returns where the directory's snapshots lie.
func (d *Dir) SnapshotDir() string { return SnapshotDir(d.path) }

// NodeID returns the node's identifier: made once, kept for ever.
func (d *Dir) NodeID() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.node.NodeID
}

// BindSource ties the directory to the ledger that a source shows, or refuses another one.
func (d *Dir) BindSource(info ledger.SourceInfo) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	node := d.node
	switch {
	case node.Source != nil && *node.Source != info.Identity:
		return d.otherLedgerLocked()
	case node.Source == nil && node.Import != nil && info.Identity != "":
		return d.otherLedgerLocked() // it makes a ledger of its own
	case node.Source == nil:
		node.Source, node.Complete = &info.Identity, info.Complete || d.node.Complete
	}
	if node.Gaps = node.Gaps || info.GapsAllowed; node == d.node {
		return nil
	}
	return d.replaceLocked(node)
}

// ShowsAll reports whether every account of the ledger was shown: the source that the directory is tied to
// shows them all, or the import that made it did, and no blocks may be missing. A filter may leave some out.
func (d *Dir) ShowsAll() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return (d.node.Complete || d.node.Import != nil) && !d.node.Gaps
}

// CheckRoot refuses a first block that is not the one of the directory's ledger.
func (d *Dir) CheckRoot(root ledger.Hash) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.node.Root != "" && d.node.Root != root.String() {
		return d.otherLedgerLocked()
	}
	return nil
}

// HasRoot reports whether a first block was ever durable.
func (d *Dir) HasRoot() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.node.Root != ""
}

// SaveRoot saves the first block of the ledger, where that is known, and whether the source
// ever spoke of finality, which no record tells apart from finality by depth.
func (d *Dir) SaveRoot(root ledger.Opt[ledger.Hash], statuses bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	node := d.node
	node.Statuses = node.Statuses || statuses
	if root.Known && node.Root == "" { // CheckRoot refused any other
		node.Root = root.Value.String()
	}
	if node == d.node {
		return nil
	}
	return d.replaceLocked(node)
}

// replaceLocked saves another content; where that fails it stays what it was.
func (d *Dir) replaceLocked(node nodeFile) error {
	before := d.node
	d.node = node
	if err := d.saveLocked(); err != nil {
		d.node = before
		return err
	}
	return nil
}

// Statuses reports whether the source ever spoke of finality.
func (d *Dir) Statuses() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.node.Statuses
}

// ErrOtherLedger ends the node whatever its source: nothing that comes later can mend it.
var ErrOtherLedger = errors.New("belongs to another ledger: choose another one with --data-dir")

func (d *Dir) otherLedgerLocked() error {
	return fmt.Errorf("data directory %s %w", d.path, ErrOtherLedger)
}

func (d *Dir) load() error {
	content, err := readFile(d.fs, d.file())
	if errors.Is(err, fs.ErrNotExist) {
		if err := d.mustBeNew(); err != nil {
			return err
		}
		id := make([]byte, 16)
		rand.Read(id) // never fails
		d.node.NodeID = hex.EncodeToString(id)
		return d.saveLocked()
	}
	if err != nil {
		return fmt.Errorf("cannot read the node file: %w", err)
	}
	strict := json.NewDecoder(bytes.NewReader(content))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&d.node); err != nil || strict.More() || d.node.Checksum == "" || d.node.Checksum != d.node.checksum() {
		return fmt.Errorf("%s is damaged: restore it, or start with another --data-dir", d.file())
	}
	d.filter, err = d.node.Filter.filter()
	if err == nil && d.node.Cluster != nil {
		_, err = d.node.Cluster.Facts.facts()
	}
	if err != nil {
		return fmt.Errorf("%s is damaged: restore it, or start with another --data-dir", d.file())
	}
	return nil
}

// lostAndFound is in every file system of ext2 to ext4, from the beginning.
const lostAndFound = "lost+found"

// mustBeNew refuses to name the node anew beside what it kept.
func (d *Dir) mustBeNew() error {
	for _, dir := range []string{d.LogDir(), d.SnapshotDir()} {
		names, err := d.fs.List(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot list %s: %w", dir, err)
		}
		if slices.ContainsFunc(names, func(name string) bool { return name != lostAndFound }) {
			return fmt.Errorf("%s is missing, and %s is not empty: restore it, or start with another --data-dir", d.file(), dir)
		}
	}
	return nil
}

// checksum returns what Checksum must be.
func (n nodeFile) checksum() string {
	n.Checksum = ""
	content, err := json.Marshal(n)
	if err != nil {
		panic(err) // it is all strings and flags
	}
	return fmt.Sprintf("%08x", crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli)))
}

func (d *Dir) file() string { return filepath.Join(d.path, "node.json") }

// saveLocked replaces node.json atomically: after a crash there is the old or the new one.
func (d *Dir) saveLocked() error {
	d.node.Checksum = d.node.checksum()
	content, err := json.MarshalIndent(&d.node, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode the node file: %w", err)
	}
	if err := replaceFile(d.fs, d.file(), append(content, '\n')); err != nil {
		return fmt.Errorf("cannot write the node file: %w", err)
	}
	return nil
}

// readFile returns the content of a small file.
func readFile(disk vfs.FS, name string) ([]byte, error) {
	f, err := disk.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(f, 0, size))
}

// replaceFile makes content that of a name, old or new after a crash.
func replaceFile(disk vfs.FS, name string, content []byte) error {
	f, err := vfs.Replace(disk, name, func(f vfs.File) error {
		_, err := f.WriteAt(content, 0)
		return err
	})
	if err != nil {
		return err
	}
	return f.Close()
}
