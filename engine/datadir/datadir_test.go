package datadir

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

func mustOpen(t *testing.T, disk vfs.FS, path string) *Dir {
	t.Helper()
	d, err := OpenOn(disk, path)
	ledgertest.Must(t, err)
	return d
}

func openOn(t *testing.T, disk vfs.FS) *Dir {
	t.Helper()
	return mustOpen(t, disk, "data")
}

// F49: a directory that is in use is refused.
func TestDirBelongsToOneProcessAndKeepsItsNodeID(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	d := mustOpen(t, vfs.Disk{}, path)
	id := d.NodeID()
	ledgertest.Holds(t, id != "", "no node id")
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "in use") || !strings.Contains(err.Error(), path) {
		t.Errorf("opened twice: %v, want that it is in use", err)
	}
	fd, err := syscall.Dup(int(d.lock.(interface{ Fd() uintptr }).Fd())) // as a process that was just forked has it
	ledgertest.Must(t, err)
	defer syscall.Close(fd)
	d.Close()
	again := mustOpen(t, vfs.Disk{}, path)
	defer again.Close()
	ledgertest.Equal(t, again.NodeID(), id, "the node id after a restart")
	other := mustOpen(t, vfs.Disk{}, t.TempDir())
	defer other.Close()
	ledgertest.Holds(t, other.NodeID() != id, "two directories have one node id")
}

// TestDamagedNodeFileIsRefused puts other content in the place of the file, and turns over each of its bits.
func TestDamagedNodeFileIsRefused(t *testing.T) {
	const file = "data/node.json"
	disk := vfstest.NewMemory()
	d := openOn(t, disk)
	ledgertest.Must(t, errors.Join(d.Bind(&ledger.SourceInfo{Identity: "test", Live: true, Complete: true}, nil, nil, false), d.SaveRoot(ledger.Some(hash(1)), true), d.Close()))
	content, err := disk.ReadFile(file)
	ledgertest.Must(t, err)
	var want nodeFile
	ledgertest.Must(t, json.Unmarshal(content, &want))
	for _, other := range []string{
		"", `{"node_id":"12`, `[]`, `{"source_identity":"x"}`, "\x00\x00\x00\x00", `{"node_id":"08c893010d2a396b85131f185655e350"}`,
	} {
		harmed := disk.Clone()
		ledgertest.Must(t, harmed.WriteFile(file, []byte(other)))
		if d, err := OpenOn(harmed, "data"); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: opened %v, %v, want an error that names %s", other, d, err, file)
		}
		// The lock is free again: a person can put the file right and go on.
		harmed.Remove(file)
		openOn(t, harmed).Close()
	}
	for at := range content {
		for bit := range 8 {
			harmed := disk.Clone()
			ledgertest.Must(t, harmed.Overwrite(file, int64(at), []byte{content[at] ^ 1<<bit}))
			// White space and the case of a name may change and mean the same.
			if d, err := OpenOn(harmed, "data"); err == nil && !reflect.DeepEqual(d.saved, want) {
				t.Errorf("bit %d of byte %d (%q) was turned over: opened as %+v", bit, at, content[at], d.saved)
			}
		}
	}
}

// key returns the n-th key of a test.
func key(n byte) ledger.Pubkey { return ledger.Pubkey{31: n} }

// hash returns the n-th block hash.
func hash(n byte) ledger.Hash { return ledger.Hash(key(n)) }
