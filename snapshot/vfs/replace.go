package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// TemporarySuffix is added to the name of a file that Replace has not finished.
const TemporarySuffix = ".tmp"

// Replace makes what fill writes the content of a name, in place of what it had, and returns the file, open. The
// bytes are written under another name and synced before that is renamed. So after a crash at any moment the name
// has all of the old content or all of the new, and once Replace has returned the new.
//
// After an error the name has either; the next call removes what is left under the other name. An error that
// IsFull or IsOutOfFiles passes, and the call may be tried again.
func Replace(disk FS, name string, fill func(File) error) (File, error) {
	temporary := name + TemporarySuffix
	if err := disk.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot remove what a crash left: %w", err)
	}
	f, err := disk.Create(temporary)
	if err != nil {
		return nil, err
	}
	if err = fill(f); err == nil {
		if err = f.Sync(); err != nil {
			err = &SyncError{err}
		}
	}
	renamed := false
	if err == nil {
		renamed, err = Install(disk, temporary, name)
	}
	if err != nil {
		_ = f.Close()
		if !renamed && IsFull(err) {
			_ = disk.Remove(temporary) // it holds space that others need
		}
		return nil, err
	}
	return f, nil
}

// Install renames a file whose bytes are synced, in place of what has the name, and returns once the name would
// survive a crash. With an error, renamed says whether the file was renamed before it.
func Install(disk FS, temporary, name string) (renamed bool, err error) {
	if err := disk.Rename(temporary, name); err != nil {
		return false, err
	}
	if err := disk.SyncDir(filepath.Dir(name)); err != nil {
		return true, fmt.Errorf("the directory of %s: %w", name, &SyncError{err})
	}
	return true, nil
}

// Size returns the size of a file in bytes.
func Size(disk FS, name string) (int64, error) {
	f, err := disk.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.Size()
}

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
