package vfstest

import (
	"io"
	"io/fs"
	"syscall"
)

// memoryFile is an open file of a Memory, or a lock.
type memoryFile struct {
	disk     *Memory
	node     *node
	name     string
	writable bool
	lock     bool
	closed   bool
}

// do is Memory.do, unless nothing can be done with the file.
func (f *memoryFile) do(kind Kind, offset int64, disk func(file *node) error, instead func(Plan)) error {
	const change = KindWriteAt | KindTruncate | KindPreallocate
	return f.disk.do(Call{Kind: kind, Name: f.name}, func() error {
		switch {
		case f.closed:
			return fs.ErrClosed
		case kind&change != 0 && !f.writable:
			return syscall.EBADF
		case offset < 0:
			return syscall.EINVAL
		}
		return disk(f.node)
	}, instead)
}

// ReadAt implements vfs.File.
func (f *memoryFile) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.do(KindReadAt, off, func(file *node) error {
		if n = file.live.readAt(p, off); n < len(p) {
			return io.EOF
		}
		return nil
	}, nil)
	return n, err
}

// WriteAt implements vfs.File. On a full disk it writes the pages there is space for.
func (f *memoryFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.do(KindWriteAt, off, func(file *node) error {
		n = f.disk.fittingLocked(file, len(p), off)
		file.writeAt(p[:n], off)
		if n < len(p) {
			return syscall.ENOSPC
		}
		return nil
	}, func(plan Plan) {
		if plan.Fault == Short {
			n = len(p) / 2
			f.node.writeAt(p[:n], off)
		}
	})
	return n, err
}

// Size implements vfs.File.
func (f *memoryFile) Size() (size int64, err error) {
	err = f.do(0, 0, func(file *node) error {
		size = file.live.size
		return nil
	}, nil)
	return size, err
}

// Truncate implements vfs.File.
func (f *memoryFile) Truncate(size int64) error {
	return f.do(KindTruncate, size, func(file *node) error {
		file.change(0, 0, func(c *content) { c.truncate(size) })
		return nil
	}, nil)
}

// Preallocate implements vfs.File. Without enough space it takes none.
func (f *memoryFile) Preallocate(size int64) error {
	return f.do(KindPreallocate, size, func(file *node) error {
		if pagesFor(size)-file.live.taken() > f.disk.freeLocked() {
			return syscall.ENOSPC
		}
		file.change(0, 0, func(c *content) { c.reserve(size) })
		return nil
	}, nil)
}

// Sync implements vfs.File.
func (f *memoryFile) Sync() error {
	return f.do(KindSync, 0, func(file *node) error {
		file.sync()
		return nil
	}, func(plan Plan) {
		if plan.LoseOnSyncFailure {
			f.node.lose()
		}
	})
}

// Close implements vfs.File. What was written stays, synced or not.
func (f *memoryFile) Close() error {
	return f.do(0, 0, func(file *node) error {
		f.closed = true
		if f.lock {
			file.locked = false
		}
		return nil
	}, nil)
}
