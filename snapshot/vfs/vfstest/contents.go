package vfstest

import (
	"path"
	"slices"
	"syscall"
)

// Paths returns the names of all files, directories left out, in order.
func (m *Memory) Paths() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	paths := []string{}
	m.root.files("", func(name string, _ *node) { paths = append(paths, name) })
	slices.Sort(paths)
	return paths
}

// ReadFile returns all bytes of a file.
func (m *Memory) ReadFile(name string) (p []byte, err error) {
	err = m.do(Call{Name: name}, func() error {
		n, err := m.lookLocked(name, false)
		if err == nil {
			p = make([]byte, n.live.size)
			n.live.readAt(p, 0)
		}
		return err
	}, nil)
	return p, err
}

// WriteFile puts a file in place, directories included, in place of what had the name. All of it
// survives a crash. The capacity does not bound it, and files open on
// what had the name keep their bytes.
func (m *Memory) WriteFile(name string, p []byte) error {
	return m.do(Call{Name: name}, func() error {
		if err := m.mkdirLocked(path.Dir(clean(name))); err != nil {
			return err
		}
		at, replaced, err := m.findLocked(name)
		switch {
		case err != nil:
			return err
		case replaced != nil && replaced.isDir():
			return syscall.EISDIR
		}
		n := m.createLocked(at)
		n.writeAt(p, 0)
		n.sync()
		m.syncDirLocked(at.dir)
		return nil
	}, nil)
}

// Overwrite changes bytes of a file as a bad disk does: no File
// need be open, and the change survives any crash. What was written before is synced with it.
func (m *Memory) Overwrite(name string, off int64, p []byte) error {
	return m.do(Call{Name: name}, func() error {
		n, err := m.lookLocked(name, false)
		if err == nil {
			n.writeAt(p, off)
			n.sync()
		}
		return err
	}, nil)
}
