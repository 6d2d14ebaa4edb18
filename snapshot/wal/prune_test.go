package wal

import (
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs/vfstest"
)

// tails returns the names of what was cut off segments and kept aside, and how many bytes they take.
func tails(t testing.TB, disk *vfstest.Memory) (names []string, bytes int64) {
	t.Helper()
	for _, name := range disk.Paths() {
		if strings.HasSuffix(name, brokenSuffix) {
			names = append(names, name)
			bytes += int64(len(contents(t, disk, name)))
		}
	}
	return names, bytes
}

// TestWhatCrashesLeaveIsCountedAndPruned has a node die in the middle of a commit again and again.
func TestWhatCrashesLeaveIsCountedAndPruned(t *testing.T) {
	disk := newDisk(t)
	const crashes = 5
	next := ledger.Version(1)
	for range crashes {
		l, _ := open(t, config(disk))
		commitAll(t, l, [][]*ledger.Record{commitOf(next, 2, 1)})
		next += 2
		// What the next commit wrote before the process died.
		segment := segmentName(testDir, l.newestLocked().index)
		end := l.newestLocked().size
		disk = disk.Crash(1, 0)
		must(t, disk.Overwrite(segment, end, []byte("a part of a commit")))
	}
	l, _ := open(t, config(disk))
	names, bytes := tails(t, disk)
	if len(names) != crashes || bytes != int64(crashes*len("a part of a commit")) {
		t.Fatalf("%d crashes left %q, %d bytes", crashes, names, bytes)
	}
	checkStats(t, l)
	_, end, err := replayAll(disk, testDir, 0)
	must(t, err)
	settled := New(config(disk.Crash(1, 0)))
	must(t, settled.Settle(end))
	if got, want := settled.Stats().Bytes, l.Stats().Bytes-headerBytes; got != want { // the newest segment, empty, will be replaced
		t.Errorf("Stats().Bytes of the settled log = %d, want %d", got, want)
	}
	must(t, l.Prune(next-2))
	if names, _ = tails(t, disk); len(names) != 1 {
		t.Errorf("after pruning all but the newest record %q are left", names)
	}
	checkStats(t, l)
	closeLog(t, l)
}

// TestOpenRemovesTailsOfPrunedSegments: earlier programs left them.
func TestOpenRemovesTailsOfPrunedSegments(t *testing.T) {
	disk := recorded(t, script(14, 2), 3<<10, true)
	must(t, disk.Remove(segmentName(testDir, 1)))
	kept := segmentName(testDir, 2) + brokenSuffix
	put(t, disk, kept, []byte("of a segment that is there"))
	put(t, disk, segmentName(testDir, 1)+brokenSuffix, []byte("of a segment that was pruned"))
	l, _ := open(t, config(disk))
	closeLog(t, l)
	if names, _ := tails(t, disk); !slices.Equal(names, []string{kept}) {
		t.Errorf("%q are left, want %q", names, kept)
	}
}
