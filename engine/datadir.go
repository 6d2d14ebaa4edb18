package engine

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"ledgerd/engine/ledger"
)

// Dir is a node's data directory. It belongs to one process at a time and to one ledger
// for ever: node.json in it names the node, the source's identity and the root block.
type Dir struct {
	path string
	lock *os.File

	mu   sync.Mutex
	node nodeFile
}

// nodeFile is the content of node.json.
type nodeFile struct {
	NodeID string  `json:"node_id"`
	Source *string `json:"source_identity,omitempty"` // absent before the first source
	Root   string  `json:"root_blockhash,omitempty"`  // absent before the first block
}

// OpenDir creates the directory if need be and locks it until Close. The lock dies with
// the process, however it ends.
func OpenDir(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o750); err != nil {
		return nil, fmt.Errorf("cannot create data directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "LOCK"), os.O_CREATE|os.O_RDWR, 0o640)
	if err != nil {
		return nil, fmt.Errorf("cannot open the lock of the data directory: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("data directory %s is in use by another process: %w", path, err)
	}
	d := &Dir{path: path, lock: lock}
	if err := d.load(); err != nil {
		lock.Close()
		return nil, err
	}
	return d, nil
}

// Close gives the directory free.
func (d *Dir) Close() error { return d.lock.Close() }

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
	if d.node.Source != nil {
		if *d.node.Source != info.Identity {
			return d.otherLedgerLocked()
		}
		return nil
	}
	d.node.Source = &info.Identity
	return d.saveLocked()
}

// BindRoot ties the directory to the first block of its ledger, or refuses another one.
func (d *Dir) BindRoot(root ledger.Hash) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	hash := root.String()
	if d.node.Root != "" {
		if d.node.Root != hash {
			return d.otherLedgerLocked()
		}
		return nil
	}
	d.node.Root = hash
	return d.saveLocked()
}

// errOtherLedger ends the node whatever its source: nothing that comes later can mend it.
var errOtherLedger = errors.New("belongs to another ledger: choose another one with --data-dir")

func (d *Dir) otherLedgerLocked() error {
	return fmt.Errorf("data directory %s %w", d.path, errOtherLedger)
}

func (d *Dir) load() error {
	content, err := os.ReadFile(d.file())
	if errors.Is(err, os.ErrNotExist) {
		id := make([]byte, 16)
		rand.Read(id) // never fails
		d.node.NodeID = hex.EncodeToString(id)
		return d.saveLocked()
	}
	if err != nil {
		return fmt.Errorf("cannot read the node file: %w", err)
	}
	if err := json.Unmarshal(content, &d.node); err != nil || d.node.NodeID == "" {
		return fmt.Errorf("%s is damaged: restore it, or start with another --data-dir", d.file())
	}
	return nil
}

func (d *Dir) file() string { return filepath.Join(d.path, "node.json") }

// saveLocked replaces node.json atomically: after a crash there is the old or the new one.
func (d *Dir) saveLocked() error {
	content, err := json.MarshalIndent(&d.node, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode the node file: %w", err)
	}
	if err := replaceFile(d.file(), append(content, '\n')); err != nil {
		return fmt.Errorf("cannot write the node file: %w", err)
	}
	return nil
}

// replaceFile writes content beside path, syncs it, and renames it over path.
func replaceFile(path string, content []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // gone already after the rename
	if _, err := temporary.Write(content); err != nil {
		temporary.Close()
		return err
	}
	if err := errors.Join(temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
