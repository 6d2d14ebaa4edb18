package wal

import (
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
)

// TestWhatCrashesLeaveIsCountedAndPruned has a node die in the middle of a commit again and again.
func TestWhatCrashesLeaveIsCountedAndPruned(t *testing.T) {
	disk := vfstest.NewMemory()
	const crashes, part = 5, "a part of a commit"
	next := ledger.Version(1)
	for range crashes {
		l, _ := open(t, config(disk))
		commitAll(t, l, [][]*ledger.Record{commitOf(next, 2, 1)})
		next += 2
		g := *l.newestLocked()
		disk = disk.Crash(1, 0)
		must(t, disk.Overwrite(g.name, g.size, []byte(part)))
	}
	tails := func(want int) {
		t.Helper()
		kept := ""
		for _, name := range disk.Paths() {
			if strings.HasSuffix(name, brokenSuffix) {
				kept += string(contents(t, disk, name))
			}
		}
		ledgertest.Equal(t, kept, strings.Repeat(part, want), "the tails that are kept aside")
	}
	l, _ := open(t, config(disk))
	tails(crashes)
	checkStats(t, l)
	settled, _ := openUnsettled(t, config(disk.Crash(1, 0)))
	must(t, settled.Settle())
	// The newest segment, which is empty, will be replaced.
	ledgertest.Equal(t, settled.Stats().Bytes, l.Stats().Bytes-headerBytes, "Stats().Bytes of the settled log")
	must(t, l.Prune(next-2))
	tails(1)
	checkStats(t, l)
	must(t, l.Close())
}

// TestOpenRemovesOnlyWhatACrashLeft: temporary files, and the tail of a segment that was pruned, which earlier programs left.
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
}
