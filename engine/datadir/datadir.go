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
	"math"
	"path/filepath"
	"slices"
	"sync"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// Dir is an open data directory. Every change of its file node.json is durable before it can be read.
type Dir struct {
	fs     vfs.FS
	path   string // of the directory
	lock   io.Closer
	isView bool // what would be saved is only noted

	mu    sync.Mutex
	saved nodeFile // the content of node.json on disk
}

const nodeFileName = "node.json"

// nodeFile is the content of node.json. Checksum is the CRC32C, in hexadecimal, of the content without the
// checksum: a file that was changed by hand or by the disk is refused.
type nodeFile struct {
	Checksum string  `json:"checksum,omitempty"`
	NodeID   string  `json:"node_id"`
	Source   *string `json:"source_identity,omitempty"` // absent before the first source
	Complete bool    `json:"complete,omitempty"`        // the source shows every account of its ledger
	Root     string  `json:"root_blockhash,omitempty"`  // absent before the first block
	Statuses bool    `json:"statuses,omitempty"`        // the source has sent a slot status
	Gaps     bool    `json:"gaps,omitempty"`            // a source was allowed to have missing blocks

	Import *ImportNote    `json:"import,omitempty"` // absent if no import made the directory
	Filter *ledger.Filter `json:"filter,omitempty"` // absent if all accounts are held
	// Data are the programs whose accounts are held with their data; absent if there are none.
	Data      *ledger.DataPrograms `json:"data,omitempty"`
	SkipVotes *bool                `json:"skip_votes,omitempty"` // vote transactions are not held; absent before the first source

	LedgerID string `json:"ledger_id,omitempty"` // of the shared log of a cluster; absent without a cluster
	Live     bool   `json:"live,omitempty"`      // the cluster's source follows a node
	// MovingAside: SetAside has begun and is not complete; log and snapshots are no longer valid.
	MovingAside bool `json:"moving_aside,omitempty"`
}

// Open creates the directory if necessary and locks it until Close or the end of the process.
// It returns ErrUnfinishedImport if an import did not finish.
func Open(path string) (*Dir, error) { return OpenOn(vfs.Disk{}, path) }

// OpenOn is Open on a given disk.
func OpenOn(disk vfs.FS, path string) (*Dir, error) { return open(disk, path, false) }

// open is OpenOn. For an import it also opens a directory with an unfinished import.
func open(disk vfs.FS, path string, forImport bool) (*Dir, error) {
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
	if err = d.load(); err == nil && d.saved.MovingAside { // a crash interrupted SetAside
		err = d.moveAside()
	}
	if err == nil && !forImport {
		err = d.checkImport()
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	return d, nil
}

// View returns the directory as Open would, or what Open would find wrong with node.json, which may be in use by a node. It takes no lock and
// changes nothing on disk: what the view is bound to, it alone knows. It does not complete an interrupted SetAside: the
// folders may still be there, on which nothing depends that a directory of a cluster is bound to.
func View(path string) (*Dir, error) { return viewOn(vfs.Disk{}, path) }

func viewOn(disk vfs.FS, path string) (*Dir, error) {
	d := &Dir{fs: disk, path: path, lock: io.NopCloser(nil), isView: true}
	err := d.load()
	if err == nil {
		err = d.checkImport()
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Close unlocks the directory.
func (d *Dir) Close() error { return d.lock.Close() }

// LogDir returns the path of the log in a data directory.
func LogDir(path string) string { return filepath.Join(path, "log") }

// SnapshotDir returns the path of the snapshots in a data directory.
func SnapshotDir(path string) string { return filepath.Join(path, "snapshots") }

// FS returns the disk of the directory.
func (d *Dir) FS() vfs.FS { return d.fs }

// Path returns the path of the directory.
func (d *Dir) Path() string { return d.path }

// LogDir returns the path of the directory's log.
func (d *Dir) LogDir() string { return LogDir(d.path) }

// SnapshotDir returns the path of the directory's snapshots.
func (d *Dir) SnapshotDir() string { return SnapshotDir(d.path) }

// HistoryDir returns the path of the directory's archive.
func (d *Dir) HistoryDir() string { return filepath.Join(d.path, "history") }

// NodeID returns the node's identifier, which never changes.
func (d *Dir) NodeID() string { return d.content().NodeID }

// content returns the content of node.json.
func (d *Dir) content() nodeFile {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.saved
}

// update applies change to the content of node.json and makes it durable. After an error the file is unchanged.
func (d *Dir) update(change func(n *nodeFile) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.saved
	if err := change(&n); err != nil || n == d.saved {
		return err
	}
	return d.saveLocked(n)
}

// saveLocked replaces node.json atomically: after a crash the file is the old or the new one.
func (d *Dir) saveLocked(n nodeFile) error {
	if d.isView {
		d.saved = n
		return nil
	}
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
	d.saved = n
	return nil
}

// checksum returns the correct Checksum of n.
func (n nodeFile) checksum() string {
	n.Checksum = ""
	return fmt.Sprintf("%08x", crc32.Checksum(encode(n), crc32.MakeTable(crc32.Castagnoli)))
}

// encode returns v as JSON.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and flags can always be encoded
	}
	return b
}

func (d *Dir) file() string { return filepath.Join(d.path, nodeFileName) }

// load reads node.json, or creates it in a new directory.
func (d *Dir) load() error {
	err := d.read()
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.mustBeNew(); err != nil {
		return err
	}
	id := make([]byte, 16)
	rand.Read(id) // never fails
	return d.saveLocked(nodeFile{NodeID: hex.EncodeToString(id)})
}

// read reads node.json.
func (d *Dir) read() error {
	f, err := d.fs.Open(d.file())
	if err != nil {
		return fmt.Errorf("cannot open the node file: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.NewSectionReader(f, 0, math.MaxInt64))
	if err != nil {
		return fmt.Errorf("cannot read the node file: %w", err)
	}
	strict := json.NewDecoder(bytes.NewReader(content))
	strict.DisallowUnknownFields()
	n := &d.saved
	if err := strict.Decode(n); err != nil || strict.More() || n.Checksum == "" || n.Checksum != n.checksum() {
		return fmt.Errorf("%s is damaged, or a version wrote it that this one does not follow: restore it, open it once with the version between, or start with another --data-dir", d.file())
	}
	return nil
}

// lostAndFound is in the root of every new ext2, ext3 and ext4 file system.
const lostAndFound = "lost+found"

// mustBeNew returns an error if the directory has a log or a snapshot: such a node must not get a new identifier.
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
