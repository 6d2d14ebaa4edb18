package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"ledgerd/engine/datadir"
	"ledgerd/snapshot/vfs"
)

// checkDataDir returns an error unless path is the data directory of a node, with more in it than what
// an import left that did not finish. Nothing is made.
func checkDataDir(path string) error {
	info, err := os.Stat(filepath.Join(path, "node.json"))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is not a data directory: it has no node.json", path)
	}
	if err != nil {
		return fmt.Errorf("cannot read the data directory: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a data directory: its node.json is no file", path)
	}
	if _, err := datadir.View(path); errors.Is(err, datadir.ErrUnfinishedImport) { // also of one that is still running
		return err
	}
	return nil
}

// replaceFile writes a file under a temporary name and gives it its own when it is complete, in place of one that is there. It then survives a
// crash. Where that fails nothing is left of it.
func replaceFile(path string, fill func(vfs.File) error) error {
	f, err := vfs.Replace(vfs.Disk{}, path, fill)
	if err != nil {
		_ = os.Remove(path + vfs.TemporarySuffix) // it may not be there
		return err
	}
	return f.Close()
}

// logBytes returns how large the log of a data directory is. It is for progress alone: what cannot be read counts as nothing.
func logBytes(dataDir string) (bytes uint64) {
	segments, _ := filepath.Glob(filepath.Join(datadir.LogDir(dataDir), "*.wal"))
	for _, name := range segments {
		size, _ := vfs.Size(vfs.Disk{}, name)
		bytes += uint64(size)
	}
	return bytes
}
