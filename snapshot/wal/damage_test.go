package wal

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

// contents returns a file of a disk.
func contents(t testing.TB, disk *vfstest.Memory, name string) []byte {
	t.Helper()
	b, err := disk.ReadFile(name)
	must(t, err)
	return b
}

// put makes a file hold b and nothing else.
func put(t testing.TB, disk *vfstest.Memory, name string, b []byte) {
	t.Helper()
	must(t, disk.WriteFile(name, b))
}

// entriesOf returns all entries of a healthy log.
func entriesOf(t testing.TB, disk vfs.FS) (entries []Entry) {
	t.Helper()
	_, err := replay(t.Context(), &Config{FS: disk, Dir: testDir}, 0, func(e []Entry) error {
		entries = append(entries, e...)
		return nil
	})
	must(t, err)
	return entries
}

// recorded returns a disk with a log of the commits, closed or as kill -9 leaves it.
func recorded(t testing.TB, commits [][]*ledger.Record, segmentBytes int64, closed bool) *vfstest.Memory {
	t.Helper()
	disk := vfstest.NewMemory()
	c := config(disk)
	c.SegmentBytes = segmentBytes
	l, _ := open(t, c)
	commitAll(t, l, commits)
	if closed {
		must(t, l.Close())
	}
	return disk.Crash(1, 0)
}

// F2, F3, F4: each byte of each file of a small log is flipped, and the file is cut there. Damage is refused with
// its place. Only in a log that was not closed the last commit, or what a cut took away after what is known
// durable, is taken for the trace of a crash.
func TestEveryHarmIsToldOrCut(t *testing.T) {
	t.Parallel()
	commits := script(9, 1)
	for _, segmentBytes := range []int64{3 << 10, 12 << 10} {
		for _, closed := range []bool{true, false} {
			disk := recorded(t, commits, segmentBytes, closed)
			names, err := disk.List(testDir)
			must(t, err)
			for _, name := range names {
				harmAll(t, fmt.Sprintf("segments of %d bytes, closed %v", segmentBytes, closed), disk, filepath.Join(testDir, name), commits, closed)
			}
		}
	}
}

// harmAll flips each byte of a file of a log, and cuts the file there.
func harmAll(t *testing.T, what string, disk *vfstest.Memory, path string, commits [][]*ledger.Record, closed bool) {
	t.Helper()
	_, end, err := replayAll(disk, testDir, 0)
	must(t, err)
	var ends []int64 // of the commits of the newest segment; 0 of those before it
	newest := end.segments[len(end.segments)-1]
	for _, e := range entriesOf(t, disk) {
		switch {
		case !e.frame.last:
		case e.Segment == newest.index:
			ends = append(ends, e.Offset+int64(e.SizeBytes))
		default:
			ends = append(ends, 0)
		}
	}
	whole := contents(t, disk, path)
	for at := int64(0); at < int64(len(whole)); at++ {
		if at%int64(vfstest.Stride(3)) != 0 || at > end.offset && at%50 != 0 { // there are only zeros
			continue
		}
		flipped := bytes.Clone(whole)
		flipped[at] ^= []byte{0x01, 0x80, 0xff}[at%3]
		kept := slices.IndexFunc(append(ends, 1<<40), func(end int64) bool { return end > at })
		harms := map[string][]byte{"flipped": flipped, "cut": whole[:at]}
		if at%8 > 1 { // frames begin at multiples of 8
			delete(harms, "cut")
		}
		for how, b := range harms {
			what := fmt.Sprintf("%s, %s %s at byte %d", what, path, how, at)
			left := disk.Clone()
			put(t, left, path, b)
			if !closed && path == newest.name && at >= headerBytes && (how == "cut" || kept >= len(commits)-1) {
				whole := at >= end.offset || slices.Contains(ends, at) || at == headerBytes
				checkCut(t, what, left, commits[:kept], how == "flipped" || !whole)
			} else {
				checkRefused(t, what, left, path, how == "flipped", commits)
			}
		}
	}
}

// checkCut checks that exactly the wanted commits are replayed, that the tail is cut and kept
// aside, and that the log goes on; a second look finds nothing torn.
func checkCut(t *testing.T, what string, disk *vfstest.Memory, want [][]*ledger.Record, torn bool) {
	t.Helper()
	end := wantLog(t, what, disk, want)
	if end.Torn() != torn || strings.Contains(end.String(), ErrCorrupt.Error()) {
		t.Fatalf("%s: Torn = %v, want %v: %v", what, end.Torn(), torn, end)
	}
	name := end.segments[len(end.segments)-1].name
	before := contents(t, disk, name)
	var warned strings.Builder
	c := config(disk)
	c.Logger = logger(&warned)
	l, _ := open(t, c)
	checkStats(t, l)
	if torn {
		kept, cut := contents(t, disk, name+brokenSuffix), before[end.offset:]
		if !bytes.Equal(kept, bytes.TrimRight(cut, "\x00")) && !bytes.Equal(kept, cut) {
			t.Fatalf("%s: %d bytes kept aside, they are not what was cut", what, len(kept))
		}
		ledgertest.Equal(t, l.Stats().Torn, int64(len(kept)), "%s: torn bytes", what)
		if strings.Count(warned.String(), "\n") != 1 || !strings.Contains(warned.String(), brokenSuffix) {
			t.Fatalf("%s: warnings %q", what, warned.String())
		}
	}
	more := commitOf(end.Version()+1, 2, 1)
	must(t, errors.Join(l.Commit(more), l.Close()))
	if end := wantLog(t, what+", after going on", disk, append(slices.Clip(want), more)); end.Torn() {
		t.Fatalf("%s: after going on: %v", what, end)
	}
}

// checkRefused: what was replayed before is right, and the error tells the last of it; if it is sure which file is damaged,
// the error names that.
func checkRefused(t *testing.T, what string, disk vfs.FS, path string, sure bool, commits [][]*ledger.Record) {
	t.Helper()
	got, _, err := replayAll(disk, testDir, 0)
	var corrupt *CorruptError
	var format *vfs.FormatError
	file := ""
	switch {
	case errors.As(err, &format):
		file = format.File
	case errors.As(err, &corrupt) && errors.Is(err, ErrCorrupt):
		file = corrupt.Segment
	default:
		t.Fatalf("%s: %d commits, %v; want %v", what, len(got), err, ErrCorrupt)
	}
	ledgertest.MustHold(t, !sure || file == path || filepath.Base(path) == newestName, "%s: %v names another file", what, err)
	if strings.Contains(err.Error(), ErrCorrupt.Error()) || !isPrefix(got, commits) {
		t.Fatalf("%s: %v says twice that it is damage, or wrong records were replayed before", what, err)
	}
	if corrupt == nil || len(got) == 0 {
		return
	}
	last := got[len(got)-1]
	tip := ledger.Slot(0) // what the last block or rollback says
	for _, r := range slices.Concat(commits...) {
		if r.Version <= corrupt.LastVersion && (r.Kind == ledger.BlockRecord || r.Kind == ledger.RollbackRecord) {
			tip = r.Slot
		}
	}
	if v := last[len(last)-1].Version; corrupt.LastVersion < v || corrupt.LastSlot != tip {
		t.Fatalf("%s: %v, but record %d was replayed", what, err, v)
	}
}

// F5: segments that were deleted, swapped, duplicated or replaced, in all pairs, are refused.
func TestSegmentsThatDoNotBelongAreRefused(t *testing.T) {
	commits, other := script(14, 2), script(14, 2)
	disk := recorded(t, commits, 3<<10, false)
	other[0][0].StateHash[0]++ // another history from the first record on
	foreign := recorded(t, other, 3<<10, false)
	segments, newestFile := segmentsOf(t, disk), filepath.Join(testDir, newestName)
	ledgertest.MustHold(t, len(segments) >= 4, "%d segments", len(segments))
	refused := func(want error, change func(left *vfstest.Memory), what string, args ...any) {
		t.Helper()
		left := disk.Clone()
		change(left)
		got, _, err := replayAll(left, testDir, 1)
		if !errors.Is(err, want) || !isPrefix(got, commits) && !isPrefix(got, other) {
			t.Errorf(what+": %d commits, %v; want %v", append(args, len(got), err, want)...)
		}
	}
	for i, a := range segments {
		// Without its oldest segments a log is one that was pruned; reading from a record that is missing tells.
		deleted := map[bool]error{true: ErrMissing, false: ErrCorrupt}[i == 0]
		refused(deleted, func(left *vfstest.Memory) { must(t, left.Remove(a.name)) }, "deleted %d", i)
		refused(ErrCorrupt, func(left *vfstest.Memory) { put(t, left, a.name, contents(t, foreign, a.name)) }, "foreign %d", i)
		refused(ErrCorrupt, func(left *vfstest.Memory) {
			put(t, left, segmentName(testDir, uint64(len(segments)+1)), contents(t, disk, a.name))
		}, "duplicated %d at the end", i)
		refused(ErrCorrupt, func(left *vfstest.Memory) { put(t, left, newestFile, newest{index: uint64(i)}.encode()) }, "newest names %d", i)
		refused(ErrCorrupt, func(left *vfstest.Memory) {
			for _, g := range segments[max(i, 1):] {
				must(t, left.Remove(g.name))
			}
		}, "deleted from %d on", max(i, 1))
		for j, b := range segments {
			if i == j {
				continue
			}
			replace := func(left *vfstest.Memory) { put(t, left, a.name, contents(t, disk, b.name)) }
			refused(ErrCorrupt, replace, "%d in place of %d", j, i)
			refused(ErrCorrupt, func(left *vfstest.Memory) {
				replace(left)
				put(t, left, b.name, contents(t, disk, a.name))
			}, "%d and %d swapped", i, j)
		}
	}
	refused(ErrCorrupt, func(left *vfstest.Memory) { must(t, left.Remove(newestFile)) }, "newest deleted")
	refused(ErrCorrupt, func(left *vfstest.Memory) { put(t, left, newestFile, contents(t, disk, newestFile)[:31]) }, "newest cut")
}

// TestARecordThatCannotBeReadIsDamage: the frame is as it was written, the record in it was not.
func TestARecordThatCannotBeReadIsDamage(t *testing.T) {
	for name, at := range map[string]int{"its format": 0, "its version": 3} {
		disk := vfstest.NewMemory()
		l, _ := open(t, config(disk))
		commitAll(t, l, [][]*ledger.Record{commitOf(1, 2, 1)})
		records := commitOf(3, 2, 1)
		var e encoded
		must(t, e.encode(records, 3))
		e.buf[e.starts[1]+frameBytes+at]++
		l.mu.Lock()
		err := l.commitLocked(records, &e)
		l.mu.Unlock()
		must(t, err)
		must(t, l.Close())
		_, _, err = replayAll(disk, testDir, 0)
		var c *CorruptError
		if !errors.As(err, &c) || c.LastVersion != 3 || c.LastSlot != 103 || c.Offset <= headerBytes {
			t.Errorf("%s: %v, want damage after record 3", name, err)
		}
	}
}
