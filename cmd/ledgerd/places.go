package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// mayBecome returns why a path neither is a directory, or a file, that can be written to, nor may become one. It makes nothing. A directory is
// made with those above it.
func mayBecome(path string, dir bool) error {
	info, err := os.Stat(path)
	above := filepath.Dir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && dir && above != path:
		return mayBecome(above, true)
	case errors.Is(err, fs.ErrNotExist):
		return mayHold(above)
	case err != nil:
		return err
	case dir && info.IsDir():
		return mayHold(path)
	case dir:
		err = syscall.ENOTDIR
	case info.IsDir():
		err = syscall.EISDIR
	default:
		err = unix.Access(path, unix.W_OK)
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return nil
}

// mayHold returns why no file can be made in a directory. It makes none. To root the kernel grants all that permissions deny, but /proc and
// /sys hold what the kernel itself makes.
func mayHold(dir string) error {
	err := unix.Access(dir, unix.W_OK|unix.X_OK)
	var system unix.Statfs_t
	if err == nil {
		err = unix.Statfs(dir, &system)
	}
	if err == nil && (system.Type == unix.PROC_SUPER_MAGIC || system.Type == unix.SYSFS_MAGIC) {
		err = syscall.EPERM
	}
	if err != nil {
		return &fs.PathError{Op: "make a file in", Path: dir, Err: err}
	}
	return nil
}
