package vfstest

import (
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"ledgerd/snapshot/vfs"
)

// Memory is a disk in memory that can lose its power: it knows what was synced and what was not.
// It is safe for concurrent use. Names are relative to its root, with or without a leading slash.
// A directory survives a crash once MkdirAll returned.
type Memory struct {
	*state
	faults *Faulty // which calls of this Memory fail; nil: none
}

// state is what a Memory has in common with every Faulty of it.
type state struct {
	mu       sync.Mutex // guards what follows, and the nodes
	root     *node
	unsynced []naming // what directories do not keep yet, oldest first
	lastID   uint64
	capacity int64
}

// NewMemory returns an empty disk of unlimited size.
func NewMemory() *Memory { return &Memory{state: &state{root: newDir(0)}} }

// do does what a call wants done with the disk, unless the call is to fail: then instead is done, if it is not nil.
func (m *Memory) do(c Call, disk func() error, instead func(Plan)) error {
	if m.faults != nil {
		m.faults.before(c)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.faults == nil || c.Kind == 0 {
		return c.wrap(disk())
	}
	return m.faults.doLocked(c, disk, instead)
}

// wrap returns an error as package os does.
func (c Call) wrap(err error) error {
	switch {
	case err == nil || err == io.EOF || err == vfs.ErrLocked:
		return err
	case c.To != "":
		return &os.LinkError{Op: c.Kind.String(), Old: c.Name, New: c.To, Err: err}
	}
	return &fs.PathError{Op: c.Kind.String(), Path: c.Name, Err: err}
}

// clean returns the one spelling of a name. A Memory has no working directory but its root.
func clean(name string) string { return path.Clean("/" + name) }

// findLocked returns the place of a name, and what has the name, nil if nothing does. The root has no place.
func (m *Memory) findLocked(name string) (at place, n *node, err error) {
	n = m.root
	if name = clean(name); name == "/" {
		return at, n, nil
	}
	for part := range strings.SplitSeq(name[1:], "/") {
		switch {
		case n == nil:
			return at, nil, syscall.ENOENT
		case !n.isDir():
			return at, nil, syscall.ENOTDIR
		}
		at = place{n, part}
		n = n.names[part]
	}
	return at, n, nil
}

// lookLocked returns what has a name. It must be a directory, or must be a file.
func (m *Memory) lookLocked(name string, dir bool) (*node, error) {
	_, n, err := m.findLocked(name)
	switch {
	case err != nil:
		return nil, err
	case n == nil:
		return nil, syscall.ENOENT
	case dir && !n.isDir():
		return nil, syscall.ENOTDIR
	case !dir && n.isDir():
		return nil, syscall.EISDIR
	}
	return n, nil
}

// Create implements vfs.FS.
func (m *Memory) Create(name string) (vfs.File, error) {
	return m.open(KindCreate, name, func() (*node, error) {
		at, n, err := m.findLocked(name)
		switch {
		case err != nil:
			return nil, err
		case n != nil:
			return nil, syscall.EEXIST
		}
		return m.createLocked(at), nil
	})
}

func (m *Memory) createLocked(at place) *node {
	m.lastID++
	n := &node{id: m.lastID}
	m.renameLocked(naming{node: n, to: at})
	return n
}

func (m *Memory) renameLocked(c naming) {
	c.apply(func(dir *node) map[string]*node { return dir.names })
	m.unsynced = append(m.unsynced, c)
}

// Open implements vfs.FS.
func (m *Memory) Open(name string) (vfs.File, error) {
	return m.open(KindOpen, name, func() (*node, error) { return m.lookLocked(name, false) })
}

// OpenWrite implements vfs.FS.
func (m *Memory) OpenWrite(name string) (vfs.File, error) {
	return m.open(KindOpenWrite, name, func() (*node, error) { return m.lookLocked(name, false) })
}

func (m *Memory) open(kind Kind, name string, find func() (*node, error)) (vfs.File, error) {
	f := &memoryFile{disk: m, name: name, writable: kind != KindOpen}
	err := m.do(Call{Kind: kind, Name: name}, func() (err error) {
		f.node, err = find()
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Remove implements vfs.FS.
func (m *Memory) Remove(name string) error {
	return m.do(Call{Kind: KindRemove, Name: name}, func() error {
		at, n, err := m.findLocked(name)
		switch {
		case err != nil:
			return err
		case n == nil:
			return syscall.ENOENT
		case len(n.names) > 0:
			return syscall.ENOTEMPTY
		}
		m.renameLocked(naming{node: n, from: at})
		return nil
	}, nil)
}

// Rename implements vfs.FS.
func (m *Memory) Rename(from, to string) error {
	return m.do(Call{Kind: KindRename, Name: from, To: to}, func() error { return m.moveLocked(clean(from), clean(to)) }, nil)
}

func (m *Memory) moveLocked(from, to string) error {
	before, n, err := m.findLocked(from)
	if err != nil {
		return err
	}
	after, replaced, err := m.findLocked(to)
	switch {
	case err != nil:
		return err
	case n == nil:
		return syscall.ENOENT
	case replaced != nil && replaced.isDir():
		return syscall.EEXIST
	case replaced == n:
		return nil
	case n.isDir() && strings.HasPrefix(to, from+"/"):
		return syscall.EINVAL
	case n.isDir() && replaced != nil:
		return syscall.ENOTDIR
	}
	m.renameLocked(naming{node: n, from: before, to: after})
	return nil
}

// MkdirAll implements vfs.FS.
func (m *Memory) MkdirAll(dir string) error {
	return m.do(Call{Kind: KindMkdirAll, Name: dir}, func() error { return m.mkdirLocked(clean(dir)) }, nil)
}

// mkdirLocked makes a directory and those above it durable, where they are missing.
func (m *Memory) mkdirLocked(name string) error {
	at, n, err := m.findLocked(name)
	if err == syscall.ENOENT {
		if err := m.mkdirLocked(path.Dir(name)); err != nil {
			return err
		}
		at, n, err = m.findLocked(name)
	}
	switch {
	case err != nil:
		return err
	case n == nil:
		// What befell the name before becomes durable first.
		if slices.ContainsFunc(m.unsynced, func(c naming) bool { return c.from == at || c.to == at }) {
			m.syncDirLocked(at.dir)
		}
		m.lastID++
		n = newDir(m.lastID)
		at.dir.names[at.name], at.dir.kept[at.name] = n, n
	case !n.isDir():
		return syscall.ENOTDIR
	}
	return nil
}

// List implements vfs.FS.
func (m *Memory) List(dir string) (names []string, err error) {
	err = m.do(Call{Kind: KindList, Name: dir}, func() error {
		n, err := m.lookLocked(dir, true)
		if err == nil {
			names = slices.Sorted(maps.Keys(n.names))
		}
		return err
	}, nil)
	return names, err
}

// SyncDir implements vfs.FS. A rename from one directory to another survives once either is synced.
func (m *Memory) SyncDir(dir string) error {
	return m.do(Call{Kind: KindSyncDir, Name: dir}, func() error {
		n, err := m.lookLocked(dir, true)
		if err == nil {
			m.syncDirLocked(n)
		}
		return err
	}, nil)
}

func (m *Memory) syncDirLocked(dir *node) {
	m.keepLocked(func(c naming) bool { return c.from.dir == dir || c.to.dir == dir })
}

// Lock implements vfs.FS.
func (m *Memory) Lock(name string) (io.Closer, error) {
	f := &memoryFile{disk: m, name: name, lock: true}
	err := m.do(Call{Kind: KindLock, Name: name}, func() error {
		at, n, err := m.findLocked(name)
		switch {
		case err != nil:
			return err
		case n == nil:
			n = m.createLocked(at)
		case n.isDir():
			return syscall.EISDIR
		case n.locked:
			return vfs.ErrLocked
		}
		f.node, n.locked = n, true
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	return f, nil
}
