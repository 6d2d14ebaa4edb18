package engine

import (
	"archive/tar"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs/vfstest"
)

// TestBackupBesideSnapshots has the node take further snapshots, and prune the log before them, while a backup opens its files: each time
// it lists the snapshots or opens one.
func TestBackupBesideSnapshots(t *testing.T) {
	c := Config{SnapshotInterval: time.Second, SegmentBytes: 4 << 10}
	diskTest(t, c, func(t *testing.T, _ *vfstest.Memory, n *subject, block *ledger.Block) {
		further := func() {
			for range 4 {
				for range 10 {
					block = n.finalize(block)
				}
				pause(2 * time.Second)
			}
		}
		further()
		for race, raced := 1, true; raced; race++ {
			calls := 0
			raced = false // the last race is after the last call
			n.disk.Arm(vfstest.Plan{Before: func(c vfstest.Call) {
				if raced || c.Kind != vfstest.KindList && (c.Kind != vfstest.KindOpen || !strings.HasSuffix(c.Name, ".state")) {
					return
				}
				if calls++; calls == race {
					raced = true
					further()
				}
			}})
			b, err := n.Backup()
			n.disk.Arm(vfstest.Plan{})
			must(t, err)
			restored := vfstest.NewMemory()
			must(t, errors.Join(untar(restored, b), b.Close()))
			mustHold(t, restored, block.Slot)
		}
	})
}

// untar writes the files of a backup to a disk.
func untar(disk *vfstest.Memory, b io.Reader) error {
	for r := tar.NewReader(b); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		path := filepath.Join("data", h.Name)
		if err := errors.Join(disk.MkdirAll(filepath.Dir(path)), disk.WriteFile(path, content)); err != nil {
			return err
		}
	}
}
