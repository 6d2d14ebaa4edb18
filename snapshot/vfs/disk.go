package vfs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Disk is the real disk.
type Disk struct{}

// Modes of new files and directories: only the owner and the group may read.
const (
	fileMode = 0o640
	dirMode  = 0o750
)

// Create implements FS.
func (Disk) Create(name string) (File, error) {
	return openDisk(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

// Open implements FS.
func (Disk) Open(name string) (File, error) { return openDisk(name, os.O_RDONLY) }

// OpenWrite implements FS.
func (Disk) OpenWrite(name string) (File, error) { return openDisk(name, os.O_RDWR) }

// openDisk opens a file. It does not wait for the other end of a named pipe, and refuses that, as it does a device, which has no end.
func openDisk(name string, flags int) (File, error) {
	f, err := os.OpenFile(name, flags|syscall.O_NONBLOCK, fileMode)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() && !info.IsDir() {
		f.Close()
		return nil, cmp.Or(err, pathError("open", name, errors.New("not a file but a device or a pipe")))
	}
	return diskFile{f}, nil
}

// Remove implements FS.
func (Disk) Remove(name string) error { return os.Remove(name) }

// Rename implements FS.
func (Disk) Rename(from, to string) error { return os.Rename(from, to) }

// MkdirAll implements FS. It makes each directory durable before the next one below, and the first
// that it finds as well: an earlier call may have ended before it could.
func (d Disk) MkdirAll(dir string) error {
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		if err := d.MkdirAll(filepath.Dir(dir)); err != nil {
			return err
		}
		if err := os.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return d.SyncDir(filepath.Dir(dir))
	case err != nil:
		return err
	case !info.IsDir():
		return pathError("mkdir", dir, syscall.ENOTDIR)
	}
	// A directory above that we may not even read is none that we made.
	if err := d.SyncDir(filepath.Dir(dir)); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// List implements FS.
func (Disk) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// SyncDir implements FS.
func (Disk) SyncDir(dir string) error {
	d, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Lock implements FS with flock(2), which needs no cleaning up after a kill.
func (Disk) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, fmt.Errorf("cannot lock %s: %w", name, err)
	}
	return lockFile{f}, nil
}

// lockFile is a file that is locked.
type lockFile struct{ *os.File }

// Close unlocks the file itself: a process that was just forked, and has not yet become another
// program, holds a descriptor of the same file, and would keep the lock for that moment.
func (f lockFile) Close() error {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // closing tells what is wrong
	return f.File.Close()
}

// FreeBytes implements FS.
func (Disk) FreeBytes(dir string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("cannot read the free space of %s: %w", dir, err)
	}
	return s.Bavail * uint64(s.Bsize), nil
}

// diskFile is a file of the real disk.
type diskFile struct{ *os.File }

// Size implements File.
func (f diskFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Preallocate implements File with fallocate(2).
func (f diskFile) Preallocate(size int64) error {
	if size == 0 {
		return nil
	}
	err := f.call("fallocate", func(fd int) error { return syscall.Fallocate(fd, 0, 0, size) })
	if errors.Is(err, syscall.EOPNOTSUPP) {
		return nil
	}
	return err
}

// Sync implements File with fdatasync(2): the times of a file need not survive.
func (f diskFile) Sync() error { return f.call("fdatasync", syscall.Fdatasync) }

// call makes a system call, again and again while signals interrupt it.
func (f diskFile) call(action string, call func(fd int) error) error {
	var result error
	raw, err := f.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			for result = call(int(fd)); result == syscall.EINTR; {
				result = call(int(fd))
			}
		})
	}
	if err != nil { // The file is closed; nothing else is an error here.
		result = fs.ErrClosed
	}
	if result != nil {
		return pathError(action, f.Name(), result)
	}
	return nil
}

func pathError(action, name string, err error) error {
	return &fs.PathError{Op: action, Path: name, Err: err}
}
