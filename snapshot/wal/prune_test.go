package wal

import (
	"slices"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

// TestOpenRemovesOnlyWhatACrashLeft: temporary files, and the tail of a segment that was pruned, which earlier programs left. Remove leaves what
// is not of the log.
func TestOpenRemovesOnlyWhatACrashLeft(t *testing.T) {
	disk := recorded(t, script(14, 2), 3<<10, true)
	must(t, disk.Remove(segmentName(testDir, 1)))
	strays := []string{"notes.txt", "1.wal", "00000000000000001.wal", "000000000000000x.wal", "0000000000000099.wal.broken",
		"0000000000000002.wal.bak", "other.tmp", "newest.old", "0000000000000002.wal.broken"}
	names, err := disk.List(testDir)
	must(t, err)
	want := slices.Sorted(slices.Values(append(names, strays...)))
	left := []string{"0000000000000002.wal.tmp", "newest.tmp", "0000000000000001.wal.broken.tmp", "0000000000000001.wal.broken"}
	for _, name := range append(strays, left...) {
		put(t, disk, testDir+"/"+name, []byte(name))
	}
	l, _ := open(t, config(disk))
	must(t, l.Close())
	got, err := disk.List(testDir)
	must(t, err)
	if next := segmentName("", l.newestLocked().index); !slices.Equal(got, slices.Sorted(slices.Values(append(want, next)))) {
		t.Errorf("the directory holds %q, want %q and %s", got, want, next)
	}
	for _, name := range strays {
		ledgertest.Equal(t, string(contents(t, disk, testDir+"/"+name)), name, "what %s holds", name)
	}
	must(t, Remove(disk, testDir))
	got, err = disk.List(testDir)
	must(t, err)
	ledgertest.Equal(t, got, slices.Sorted(slices.Values(strays)), "what is left of a log that was removed")
}
