package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"ledgerd/snapshot/vfs"
)

// createAside makes a file under another name, fills and syncs it, and only then gives it its
// own name, in place of what had it. It returns once the name would survive a crash.
func createAside(c *Config, name string, fill func(vfs.File) error) (vfs.File, error) {
	aside := name + asideSuffix
	if err := c.FS.Remove(aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot remove what a crash left: %w", outOfSpace(err))
	}
	f, err := c.FS.Create(aside)
	if err != nil {
		return nil, outOfSpace(err)
	}
	if err := fill(f); err != nil {
		_ = f.Close()
		if errors.Is(err, ErrNoSpace) {
			_ = c.FS.Remove(aside) // it holds space that others need; the next attempt removes it too
		}
		return nil, err
	}
	if err := f.Sync(); err != nil {
		_ = f.Close()
		return nil, err
	}
	// To rename again what may have been renamed already would do no harm: it is the same
	// file by content. So want of space is no failure here.
	if err := outOfSpace(c.FS.Rename(aside, name)); err != nil {
		_ = f.Close()
		return nil, err
	}
	if err := syncDir(c.FS, c.Dir); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// madeAside tells whether createAside made the name.
func madeAside(name string) bool {
	name, ok := strings.CutSuffix(name, asideSuffix)
	name = strings.TrimSuffix(name, brokenSuffix)
	_, segment := segmentIndex(name)
	return ok && (segment || name == newestName)
}
