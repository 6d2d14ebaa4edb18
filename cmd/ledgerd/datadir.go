package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"ledgerd/engine/datadir"
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
	if err := datadir.Check(path); errors.Is(err, datadir.ErrUnfinishedImport) { // also of one that is still running
		return err
	}
	return nil
}
