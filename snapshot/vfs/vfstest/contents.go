package vfstest

import (
	"path"
	"slices"
	"syscall"
)

// Paths returns the names of all files, directories left out, in order.
func (m *Memory) Paths() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	paths := make([]string, 0, len(m.names.home))
	for _, name := range m.names.home {
		paths = append(paths, name)
	}
	slices.Sort(paths)
	return paths
}

// ReadFile returns all bytes of a file.
func (m *Memory) ReadFile(name string) ([]byte, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.fileLocked("open", name)
	if err != nil {
		return nil, err
	}
	p := make([]byte, n.live.size)
	n.live.readAt(p, 0)
	return p, nil
}

// WriteFile puts a file in place, directories included, in place of what had the name. All of it
// survives a crash. The capacity does not bound it, and files open on
// what had the name keep their bytes.
func (m *Memory) WriteFile(name string, p []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := clean(name)
	missing, err := m.missingLocked(path.Dir(at))
	if err == nil && m.names.isDir(at) {
		err = syscall.EISDIR
	}
	if err != nil {
		return pathError("write", name, err)
	}
	m.mkdirLocked(missing)
	replaced := m.names.get(at)
	m.lastID++
	n := newNode(m.lastID, content{})
	n.named = true
	n.writeAt(p, 0)
	n.sync()
	m.taken += n.live.taken
	m.renameLocked(naming{node: n, to: at})
	m.syncDirLocked(path.Dir(at))
	if replaced != nil {
		replaced.named = false
		m.releaseLocked(replaced)
	}
	return nil
}

// Overwrite changes bytes of a file as a bad disk does: no File
// need be open, and the change survives any crash. What was written before is synced with it.
func (m *Memory) Overwrite(name string, off int64, p []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.fileLocked("write", name)
	if err != nil {
		return err
	}
	before := n.live.taken
	n.writeAt(p, off)
	n.sync()
	m.taken += n.live.taken - before
	return nil
}
