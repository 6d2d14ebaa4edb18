package vfstest

import (
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"syscall"

	"ledgerd/snapshot/vfs"
)

// Memory is a disk in memory that can lose its power: it knows what was synced and what was not.
// It is safe for concurrent use. Names are relative to its root, with or without a leading slash.
// A directory survives a crash once MkdirAll returned.
type Memory struct {
	mu       sync.RWMutex
	names    tree
	durable  tree
	unsynced []naming // what names has and durable has not, oldest first
	lastID   uint64
	taken    int // pages of all files that have a name or are open
	capacity int64
}

// NewMemory returns an empty disk of unlimited size.
func NewMemory() *Memory {
	return &Memory{names: newTree(), durable: newTree()}
}

// Create implements vfs.FS.
func (m *Memory) Create(name string) (vfs.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := clean(name)
	if m.names.get(at) != nil || m.names.isDir(at) {
		return nil, pathError("open", name, syscall.EEXIST)
	}
	n, err := m.createLocked(name, at)
	if err != nil {
		return nil, err
	}
	return m.openLocked(n, name, true), nil
}

func (m *Memory) createLocked(name, at string) (*node, error) {
	if err := m.parentLocked(at); err != nil {
		return nil, pathError("open", name, err)
	}
	m.lastID++
	n := newNode(m.lastID, content{})
	n.named = true
	m.renameLocked(naming{node: n, to: at})
	return n, nil
}

// parentLocked returns why nothing can have the name: what should be its directory is none.
func (m *Memory) parentLocked(at string) error {
	switch dir := path.Dir(at); {
	case m.names.isDir(dir):
		return nil
	case m.names.get(dir) != nil:
		return syscall.ENOTDIR
	default:
		return syscall.ENOENT
	}
}

func (m *Memory) renameLocked(c naming) {
	m.names.apply(c)
	m.unsynced = append(m.unsynced, c)
}

func (m *Memory) openLocked(n *node, name string, writable bool) *memoryFile {
	n.open++
	return &memoryFile{disk: m, node: n, name: name, writable: writable}
}

// Open implements vfs.FS.
func (m *Memory) Open(name string) (vfs.File, error) { return m.openAs(name, false) }

// OpenWrite implements vfs.FS.
func (m *Memory) OpenWrite(name string) (vfs.File, error) { return m.openAs(name, true) }

func (m *Memory) openAs(name string, writable bool) (vfs.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.fileLocked("open", name)
	if err != nil {
		return nil, err
	}
	return m.openLocked(n, name, writable), nil
}

func (m *Memory) fileLocked(action, name string) (*node, error) {
	at := clean(name)
	if n := m.names.get(at); n != nil {
		return n, nil
	}
	if m.names.isDir(at) {
		return nil, pathError(action, name, syscall.EISDIR)
	}
	if err := m.parentLocked(at); err != nil {
		return nil, pathError(action, name, err)
	}
	return nil, pathError(action, name, syscall.ENOENT)
}

// Remove implements vfs.FS.
func (m *Memory) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at := clean(name); m.names.isDir(at) {
		return m.removeDirLocked(at, name)
	}
	n, err := m.fileLocked("remove", name)
	if err != nil {
		return err
	}
	m.renameLocked(naming{node: n, from: clean(name)})
	n.named = false
	m.releaseLocked(n)
	return nil
}

// removeDirLocked removes an empty directory.
func (m *Memory) removeDirLocked(at, name string) error {
	if len(m.names.dirs[at]) > 0 {
		return pathError("remove", name, syscall.ENOTEMPTY)
	}
	m.renameLocked(naming{from: at})
	return nil
}

// Rename implements vfs.FS.
func (m *Memory) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.moveLocked(from, clean(to)); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

func (m *Memory) moveLocked(from, to string) error {
	if m.names.isDir(clean(from)) {
		return m.moveDirLocked(clean(from), to)
	}
	n, err := m.fileLocked("rename", from)
	if err != nil {
		return err.(*fs.PathError).Err
	}
	if err := m.parentLocked(to); err != nil {
		return err
	}
	replaced := m.names.get(to)
	switch {
	case m.names.isDir(to):
		return syscall.EEXIST
	case replaced == n:
		return nil
	}
	m.renameLocked(naming{node: n, from: clean(from), to: to})
	if replaced != nil {
		replaced.named = false
		m.releaseLocked(replaced)
	}
	return nil
}

// moveDirLocked renames a directory to a name that is free.
func (m *Memory) moveDirLocked(from, to string) error {
	if err := m.parentLocked(to); err != nil {
		return err
	}
	switch {
	case m.names.isDir(to):
		return syscall.EEXIST
	case isOrBelow(to, from):
		return syscall.EINVAL
	case m.names.get(to) != nil:
		return syscall.ENOTDIR
	}
	m.renameLocked(naming{from: from, to: to})
	return nil
}

// MkdirAll implements vfs.FS.
func (m *Memory) MkdirAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	missing, err := m.missingLocked(clean(dir))
	if err != nil {
		return pathError("mkdir", dir, err)
	}
	m.mkdirLocked(missing)
	return nil
}

// missingLocked returns a directory and those above it as far as they are missing, the
// topmost first.
func (m *Memory) missingLocked(at string) ([]string, error) {
	var missing []string
	for ; !m.names.isDir(at); at = path.Dir(at) {
		if m.names.get(at) != nil {
			return nil, syscall.ENOTDIR
		}
		missing = append(missing, at)
	}
	slices.Reverse(missing)
	return missing, nil
}

func (m *Memory) mkdirLocked(missing []string) {
	for _, at := range missing {
		if m.durable.isDir(at) { // what befell the directory that had the name becomes durable first
			m.syncDirLocked(path.Dir(at))
		}
		m.names.mkdir(at)
		m.durable.mkdir(at)
	}
}

// List implements vfs.FS.
func (m *Memory) List(dir string) ([]string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.directoryLocked("open", dir); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(m.names.dirs[clean(dir)]))
	for name := range m.names.dirs[clean(dir)] {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

func (m *Memory) directoryLocked(action, dir string) error {
	at := clean(dir)
	if m.names.isDir(at) {
		return nil
	}
	return pathError(action, dir, m.parentLocked(path.Join(at, "any")))
}

// SyncDir implements vfs.FS. A rename from one directory to another survives once either is synced.
func (m *Memory) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.directoryLocked("sync", dir); err != nil {
		return err
	}
	at := clean(dir)
	m.syncDirLocked(at)
	return nil
}

func (m *Memory) syncDirLocked(at string) {
	synced := make([]bool, len(m.unsynced))
	for i, c := range m.unsynced {
		synced[i] = c.touches(at)
	}
	complete(m.unsynced, synced)
	left := m.unsynced[:0]
	for i, c := range m.unsynced {
		switch {
		case synced[i]:
			m.durable.apply(c)
			if c.node == nil && c.to != "" {
				moveNames(left, c.from, c.to)
			}
		default:
			left = append(left, c)
		}
	}
	clear(m.unsynced[len(left):])
	m.unsynced = left
}

// moveNames has changes, which came before a directory was renamed, be of its new name.
func moveNames(changes []naming, from, to string) {
	for i := range changes {
		for _, name := range []*string{&changes[i].from, &changes[i].to} {
			if isOrBelow(*name, from) {
				*name = to + (*name)[len(from):]
			}
		}
	}
}

// Lock implements vfs.FS.
func (m *Memory) Lock(name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := clean(name)
	n := m.names.get(at)
	switch {
	case m.names.isDir(at):
		return nil, pathError("open", name, syscall.EISDIR)
	case n == nil:
		var err error
		if n, err = m.createLocked(name, at); err != nil {
			return nil, err
		}
	case n.locked:
		return nil, vfs.ErrLocked
	}
	n.locked = true
	return &memoryLock{m.openLocked(n, name, true)}, nil
}

func pathError(action, name string, err error) error {
	return &fs.PathError{Op: action, Path: name, Err: err}
}
