package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// Clear removes the files of a directory, which may be missing. The directory stays.
func Clear(disk FS, dir string) error {
	names, err := disk.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range names {
		err = errors.Join(err, disk.Remove(filepath.Join(dir, name)))
	}
	if err != nil {
		return fmt.Errorf("cannot clear %s: %w", dir, err)
	}
	return nil
}
