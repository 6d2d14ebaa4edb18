package wal

import (
	"strings"

	"ledgerd/snapshot/vfs"
)

// replace is vfs.Replace with the errors of the log.
func replace(c *Config, name string, fill func(vfs.File) error) (vfs.File, error) {
	f, err := vfs.Replace(c.FS, name, fill)
	return f, outOfSpace(err)
}

// isTemporary tells whether replace made the name.
func isTemporary(name string) bool {
	name, ok := strings.CutSuffix(name, vfs.TemporarySuffix)
	name = strings.TrimSuffix(name, brokenSuffix)
	_, segment := segmentIndex(name)
	return ok && (segment || name == newestName)
}
