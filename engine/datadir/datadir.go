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

// Dir is an open data directory.
type Dir struct {
	fs   vfs.FS
	path string
	lock io.Closer

	mu   sync.Mutex
	node nodeFile // as it is on disk
}

// nodeFile is the content of node.json. Checksum is the CRC32C, in hexadecimal, of the same content without
// it: a file that was changed by hand or by the disk is refused.
type nodeFile struct {
	Checksum string  `json:"checksum,omitempty"`
	NodeID   string  `json:"node_id"`
	Source   *string `json:"source_identity,omitempty"` // absent before the first source
	Complete bool    `json:"complete,omitempty"`        // the source shows every account of its ledger
	Root     string  `json:"root_blockhash,omitempty"`  // absent before the first block
	Statuses bool    `json:"statuses,omitempty"`        // the source spoke of finality
	Gaps     bool    `json:"gaps,omitempty"`            // a source was to pass over missing blocks

	Import *ImportNote    `json:"import,omitempty"` // absent where no import made the directory
	Filter *ledger.Filter `json:"filter,omitempty"` // absent where all accounts are held
	// Cluster and SettingAside are of earlier versions; see upgrade.
	Cluster *struct {
		LedgerID string `json:"ledger_id"`
		Facts    Facts  `json:"facts"`
	} `json:"cluster,omitempty"`
	SettingAside bool `json:"setting_aside,omitempty"`
	// SkipVotes: vote transactions are not held. Absent before the first source, and where a directory was
	// begun when that was not noted.
	SkipVotes *bool `json:"skip_votes,omitempty"`

	LedgerID string `json:"ledger_id,omitempty"` // of the log that a cluster shares; absent where the node is alone
	Live     bool   `json:"live,omitempty"`      // the cluster's source follows a node
	// MovingAside: log and snapshots are being set aside, and what they hold does not count any more.
	MovingAside bool `json:"moving_aside,omitempty"`
}

// Open creates the directory if need be and locks it until Close. The lock ends with the process, however that
// ends.
func Open(path string) (*Dir, error) { return OpenOn(vfs.Disk{}, path) }

// OpenOn is Open on any disk.
func OpenOn(disk vfs.FS, path string) (*Dir, error) {
	d, err := open(disk, path)
	if err == nil && d.node.Import.unfinished() {
		d.lock.Close()
		return nil, fmt.Errorf("data directory %s %w", path, ErrUnfinishedImport)
	}
	return d, err
}

// open opens a directory also where an import did not finish.
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
	if err = d.load(); err == nil && d.node.MovingAside { // a crash interrupted it
		err = d.moveAside()
	}
	if err != nil {
		lock.Close()
		return nil, err
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
func (d *Dir) NodeID() string { return d.content().NodeID }

// content returns what node.json says.
func (d *Dir) content() nodeFile {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.node
}

// update makes what change makes of node.json durable. After an error of either, the file is as it was.
func (d *Dir) update(change func(n *nodeFile) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.node
	if err := change(&n); err != nil || n == d.node {
		return err
	}
	return d.saveLocked(n)
}

// saveLocked replaces node.json atomically: after a crash there is the old or the new one.
func (d *Dir) saveLocked(n nodeFile) error {
	n.Checksum = n.checksum()
	content, err := json.MarshalIndent(&n, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode the node file: %w", err)
	}
	f, err := vfs.Replace(d.fs, d.file(), func(f vfs.File) error {
		_, err := f.WriteAt(append(content, '\n'), 0)
		return err
	})
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return fmt.Errorf("cannot write the node file: %w", err)
	}
	d.node = n
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

// load reads node.json, and makes it where the directory is new.
func (d *Dir) load() error {
	content, err := readFile(d.fs, d.file())
	if errors.Is(err, fs.ErrNotExist) {
		if err := d.mustBeNew(); err != nil {
			return err
		}
		id := make([]byte, 16)
		rand.Read(id) // never fails
		return d.saveLocked(nodeFile{NodeID: hex.EncodeToString(id)})
	}
	if err != nil {
		return fmt.Errorf("cannot read the node file: %w", err)
	}
	strict := json.NewDecoder(bytes.NewReader(content))
	strict.DisallowUnknownFields()
	n := &d.node
	if err := strict.Decode(n); err != nil || strict.More() || n.Checksum == "" || n.Checksum != n.checksum() {
		return fmt.Errorf("%s is damaged: restore it, or start with another --data-dir", d.file())
	}
	return d.upgrade()
}

// upgrade takes over what an earlier version wrote differently. It had the facts of a cluster twice, and moved
// file by file what it set aside.
func (d *Dir) upgrade() error {
	n := &d.node
	if n.SettingAside {
		return fmt.Errorf("an earlier version began to set aside what data directory %s holds: open it once with that version, or choose another --data-dir", d.path)
	}
	if c := n.Cluster; c != nil {
		n.LedgerID, n.Live, n.Cluster = c.LedgerID, c.Facts.Live, nil
	}
	return nil
}

// lostAndFound is in every file system of ext2 to ext4, from the beginning.
const lostAndFound = "lost+found"

// mustBeNew returns an error where there is log or a snapshot: a node that has either is not named anew.
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
