package vfstest

import (
	"io"
	"io/fs"
	"syscall"
)

// memoryFile is an open file of a Memory.
type memoryFile struct {
	disk     *Memory
	node     *node
	name     string
	writable bool
	closed   bool
}

// checkLocked returns why nothing can be done with the file.
func (f *memoryFile) checkLocked(action string, offset int64, change bool) error {
	switch {
	case f.closed:
		return pathError(action, f.name, fs.ErrClosed)
	case change && !f.writable:
		return pathError(action, f.name, syscall.EBADF)
	case offset < 0:
		return pathError(action, f.name, syscall.EINVAL)
	}
	return nil
}

// ReadAt implements vfs.File.
func (f *memoryFile) ReadAt(p []byte, off int64) (int, error) {
	f.disk.mu.RLock()
	defer f.disk.mu.RUnlock()
	if err := f.checkLocked("read", off, false); err != nil {
		return 0, err
	}
	n := f.node.live.readAt(p, off)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements vfs.File. On a full disk it writes the pages there is space for.
func (f *memoryFile) WriteAt(p []byte, off int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.checkLocked("write", off, true); err != nil {
		return 0, err
	}
	fitting := f.fittingLocked(len(p), off)
	if fitting > 0 {
		f.changeLocked(func(n *node) { n.writeAt(p[:fitting], off) })
	}
	if fitting < len(p) {
		return fitting, pathError("write", f.name, syscall.ENOSPC)
	}
	return fitting, nil
}

// fittingLocked returns how much of a write there is space for.
func (f *memoryFile) fittingLocked(length int, off int64) int {
	if f.disk.capacity == 0 {
		return length
	}
	free := f.disk.freeLocked()
	for at := off; at < off+int64(length); at += pageBytes - at%pageBytes {
		if free -= f.node.live.missing(at, 1); free < 0 {
			return int(at - off)
		}
	}
	return length
}

// changeLocked changes the node and keeps account of the space.
func (f *memoryFile) changeLocked(change func(*node)) {
	before := f.node.live.taken
	change(f.node)
	f.disk.taken += f.node.live.taken - before
}

// Size implements vfs.File.
func (f *memoryFile) Size() (int64, error) {
	f.disk.mu.RLock()
	defer f.disk.mu.RUnlock()
	if err := f.checkLocked("stat", 0, false); err != nil {
		return 0, err
	}
	return f.node.live.size, nil
}

// Truncate implements vfs.File.
func (f *memoryFile) Truncate(size int64) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.checkLocked("truncate", size, true); err != nil {
		return err
	}
	f.changeLocked(func(n *node) { n.truncate(size) })
	return nil
}

// Preallocate implements vfs.File. Without enough space it takes none.
func (f *memoryFile) Preallocate(size int64) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.checkLocked("fallocate", size, true); err != nil {
		return err
	}
	if f.node.live.missing(0, size) > f.disk.freeLocked() {
		return pathError("fallocate", f.name, syscall.ENOSPC)
	}
	f.changeLocked(func(n *node) { n.reserve(size) })
	return nil
}

// Sync implements vfs.File.
func (f *memoryFile) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.checkLocked("fdatasync", 0, false); err != nil {
		return err
	}
	f.node.sync()
	return nil
}

// loseUnsynced implements loser.
func (f *memoryFile) loseUnsynced() {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.node.lose()
}

// Close implements vfs.File. What was written stays, synced or not.
func (f *memoryFile) Close() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return f.closeLocked()
}

func (f *memoryFile) closeLocked() error {
	if f.closed {
		return pathError("close", f.name, fs.ErrClosed)
	}
	f.closed = true
	f.node.open--
	f.disk.releaseLocked(f.node)
	return nil
}

// memoryLock holds the lock of a file.
type memoryLock struct{ file *memoryFile }

// Close lets the lock go.
func (l *memoryLock) Close() error {
	l.file.disk.mu.Lock()
	defer l.file.disk.mu.Unlock()
	err := l.file.closeLocked()
	if err == nil {
		l.file.node.locked = false
	}
	return err
}
