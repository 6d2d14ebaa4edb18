package wal

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

// contents returns a file of a disk.
func contents(t testing.TB, disk *vfstest.Memory, name string) []byte {
	t.Helper()
	b, err := disk.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// put makes a file hold b and nothing else.
func put(t testing.TB, disk *vfstest.Memory, name string, b []byte) {
	t.Helper()
	if err := disk.WriteFile(name, b); err != nil {
		t.Fatal(err)
	}
}

// entriesOf returns all entries of a healthy log.
func entriesOf(t testing.TB, disk vfs.FS) (entries []Entry) {
	t.Helper()
	if _, err := Replay(t.Context(), disk, testDir, 0, func(e []Entry) error {
		entries = append(entries, e...)
		return nil
	}, nil); err != nil {
		t.Fatal(err)
	}
	return entries
}

// recorded returns a disk with a log of the commits, closed or as kill -9 leaves it.
func recorded(t testing.TB, commits [][]*ledger.Record, segmentBytes int64, closed bool) *vfstest.Memory {
	t.Helper()
	disk := newDisk(t)
	c := config(disk)
	c.SegmentBytes = segmentBytes
	l, _ := open(t, c)
	commitAll(t, l, commits)
	if closed {
		closeLog(t, l)
	}
	return disk.Crash(1, 0)
}

// TestTruncationAtEveryByte cuts a log at every byte of its last three records. What lies
// above what is known durable is cut, what lies below is refused.
func TestTruncationAtEveryByte(t *testing.T) {
	t.Parallel()
	commits := script(12, 2)
	disk := recorded(t, commits, 64<<10, false)
	entries := entriesOf(t, disk)
	last := entries[len(entries)-3:]
	whole := contents(t, disk, segmentName(testDir, 1))
	end := int(last[2].Offset) + last[2].SizeBytes
	for cut := int(last[0].Offset); cut <= end; cut += stride(5) {
		left := disk.Clone()
		put(t, left, segmentName(testDir, 1), whole[:cut])
		checkCut(t, fmt.Sprintf("cut at byte %d", cut), left, cutOutcome(commits, entries, cut), cut)
	}
	disk = recorded(t, commits, 64<<10, true)
	for cut := int(last[0].Offset); cut < end; cut += stride(5) {
		left := disk.Clone()
		put(t, left, segmentName(testDir, 1), whole[:cut])
		if _, _, err := replayAll(left, testDir, 0); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut by a person after a clean end, at byte %d: %v, want %v", cut, err, ErrCorrupt)
		}
	}
}

// cutOutcome returns the commits that are whole before the cut.
func cutOutcome(commits [][]*ledger.Record, entries []Entry, cut int) [][]*ledger.Record {
	n, e := 0, 0
	for _, c := range commits {
		e += len(c)
		if int(entries[e-1].Offset)+entries[e-1].SizeBytes > cut {
			break
		}
		n++
	}
	return commits[:n]
}

// checkCut checks that exactly the wanted commits are replayed, that the tail is cut and kept
// aside, and that the log goes on; a second look finds nothing torn.
func checkCut(t *testing.T, what string, disk *vfstest.Memory, want [][]*ledger.Record, cut int) {
	t.Helper()
	got, end, err := replayAll(disk, testDir, 0)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	wantCommits(t, what, got, want)
	before := contents(t, disk, segmentName(testDir, 1))
	if torn := int64(cut) > int64(end.position); end.Torn() != torn {
		t.Fatalf("%s: Torn = %v, want %v: %v", what, end.Torn(), torn, end)
	}
	var warned lines
	c := config(disk)
	c.Logger = warned.logger()
	l, err := Open(c, end)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if end.Torn() {
		kept := contents(t, disk, segmentName(testDir, 1)+brokenSuffix)
		if !bytes.Equal(kept, bytes.TrimRight(before[end.offset:], "\x00")) && !bytes.Equal(kept, before[end.offset:]) {
			t.Fatalf("%s: %d bytes kept aside, they are not what was cut", what, len(kept))
		}
		if len(warned) != 1 || !strings.Contains(warned[0], brokenSuffix) {
			t.Fatalf("%s: warnings %q", what, warned)
		}
	}
	commitAll(t, l, [][]*ledger.Record{commitOf(end.Version()+1, 2, 1)})
	closeLog(t, l)
	got, end, err = replayAll(disk, testDir, 0)
	if err != nil || end.Torn() || len(got) != len(want)+1 {
		t.Fatalf("%s: after going on: %d commits, %v, %v; want %d", what, len(got), end, err, len(want)+1)
	}
}

// TestTruncationBelowDurableIsRefused cuts where a later frame, in the same or in a later segment,
// said that the log was durable.
func TestTruncationBelowDurableIsRefused(t *testing.T) {
	t.Parallel()
	disk := recorded(t, script(20, 2), 3<<10, false)
	segments := segmentsOf(t, disk)
	for _, g := range segments[:len(segments)-1] {
		whole := contents(t, disk, g.name)
		for cut := 0; cut < len(whole); cut += stride(7) {
			left := disk.Clone()
			put(t, left, g.name, whole[:cut])
			if got, _, err := replayAll(left, testDir, 0); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%s cut at byte %d: %d commits, %v; want %v", g.name, cut, len(got), err, ErrCorrupt)
			}
		}
	}
}

// TestEveryFlippedByteIsToldOrCut flips each byte of a small log. Damage is refused with its
// place; only the last commit of a log that was not closed may be cut instead.
func TestEveryFlippedByteIsToldOrCut(t *testing.T) {
	t.Parallel()
	commits := script(9, 1)
	for name, segmentBytes := range map[string]int64{"several segments": 3 << 10, "one segment": 12 << 10} {
		for _, closed := range []bool{true, false} {
			what := fmt.Sprintf("%s, closed %v", name, closed)
			flipAll(t, what, recorded(t, commits, segmentBytes, closed), commits, closed)
		}
	}
}

// flipAll flips each byte of each file of a log.
func flipAll(t *testing.T, what string, disk *vfstest.Memory, commits [][]*ledger.Record, closed bool) {
	t.Helper()
	names, err := disk.List(testDir)
	if err != nil {
		t.Fatal(err)
	}
	_, end, err := replayAll(disk, testDir, 0)
	if err != nil {
		t.Fatal(err)
	}
	newest := filepath.Base(end.segments[len(end.segments)-1].name)
	for _, name := range names {
		path := filepath.Join(testDir, name)
		whole := contents(t, disk, path)
		for at := 0; at < len(whole); at += stride(7) {
			what := fmt.Sprintf("%s, %s, byte %d", what, name, at)
			flipped := bytes.Clone(whole)
			flipped[at] ^= []byte{0x01, 0x80, 0xff}[at%3]
			left := disk.Clone()
			put(t, left, path, flipped)
			got, after, err := replayAll(left, testDir, 0)
			if err == nil && !closed && name == newest {
				checkFlipCut(t, what, got, after, commits, int64(at), end.offset)
				continue
			}
			checkRefused(t, what, path, got, err, commits)
		}
	}
}

// checkFlipCut: after the end only zeros were flipped, before it the last commit went.
func checkFlipCut(t *testing.T, what string, got [][]*ledger.Record, after End, commits [][]*ledger.Record, at, end int64) {
	t.Helper()
	want := len(commits)
	if at < end {
		want--
	}
	if len(got) != want || !isPrefix(got, commits) || !after.Torn() || strings.Contains(after.String(), ErrCorrupt.Error()) {
		t.Fatalf("%s: %d commits, torn %v, want %d: %v", what, len(got), after.Torn(), want, after)
	}
}

// tipAt returns the chain's tip after a version: what its last block or rollback says.
func tipAt(commits [][]*ledger.Record, v ledger.Version) (tip ledger.Slot) {
	for _, r := range slices.Concat(commits...) {
		if r.Version <= v && (r.Kind == ledger.BlockRecord || r.Kind == ledger.RollbackRecord) {
			tip = r.Slot
		}
	}
	return tip
}

// checkRefused: the error names the file and a place, and what was replayed before is right.
func checkRefused(t *testing.T, what, path string, got [][]*ledger.Record, err error, commits [][]*ledger.Record) {
	t.Helper()
	var corrupt *CorruptError
	var format *vfs.FormatError
	switch {
	case errors.As(err, &format):
		if format.File != path {
			t.Fatalf("%s: %v names another file", what, err)
		}
	case !errors.As(err, &corrupt) || !errors.Is(err, ErrCorrupt):
		t.Fatalf("%s: %d commits, %v; want %v", what, len(got), err, ErrCorrupt)
	case corrupt.Segment != path && filepath.Base(path) != newestName:
		t.Fatalf("%s: %v names another file", what, err)
	case strings.Contains(err.Error(), ErrCorrupt.Error()):
		t.Fatalf("%s: %v says twice that it is damage", what, err)
	}
	if !isPrefix(got, commits) {
		t.Fatalf("%s: wrong records were replayed before: %v", what, err)
	}
	if corrupt != nil && len(got) > 0 {
		last := got[len(got)-1]
		if v := last[len(last)-1].Version; corrupt.LastVersion < v || corrupt.LastSlot != tipAt(commits, corrupt.LastVersion) {
			t.Fatalf("%s: %v, but record %d was replayed", what, err, v)
		}
	}
}

func TestWhatFollowsTheEnd(t *testing.T) {
	commits := script(5, 2)
	tests := map[string]struct {
		after []byte
		torn  bool
	}{
		"nothing":            {nil, false},
		"a few zeros":        {make([]byte, 13), false},
		"many zeros":         {make([]byte, 3<<20), false},
		"garbage":            {bytes.Repeat([]byte{0xa5}, 500), true},
		"zeros, garbage":     {append(make([]byte, 4096), 1, 2, 3), true},
		"garbage, zeros":     {append([]byte{1, 2, 3}, make([]byte, 3<<20)...), true},
		"a length of 4 GiB":  {append([]byte{0xff, 0xff, 0xff, 0xff, 0xa3, 0xf7, 1, 1}, make([]byte, 200)...), true},
		"a length of 1 GiB":  {append([]byte{0, 0, 0, 0x40, 0xa3, 0xf7, 1, 1}, make([]byte, 200)...), true},
		"one byte, not zero": {[]byte{1}, true},
	}
	for name, tt := range tests {
		disk := recorded(t, commits, 64<<10, false)
		entries := entriesOf(t, disk)
		e := entries[len(entries)-1]
		path := segmentName(testDir, 1)
		whole := contents(t, disk, path)[:int(e.Offset)+e.SizeBytes]
		put(t, disk, path, append(bytes.Clone(whole), tt.after...))
		got, end, err := replayAll(disk, testDir, 0)
		if err != nil || end.Torn() != tt.torn {
			t.Errorf("%s: torn %v, %v; want torn %v", name, end.Torn(), err, tt.torn)
			continue
		}
		wantCommits(t, name, got, commits)
		l, err := Open(config(disk), end)
		if err != nil {
			t.Fatal(err)
		}
		closeLog(t, l)
		if got := contents(t, disk, path); !bytes.Equal(got, whole) {
			t.Errorf("%s: the segment has %d bytes after Open, want the %d that are whole", name, len(got), len(whole))
		}
	}
}

// TestSegmentsThatDoNotBelongAreRefused deletes, swaps, duplicates and replaces segments, in all pairs.
func TestSegmentsThatDoNotBelongAreRefused(t *testing.T) {
	commits := script(14, 2)
	disk := recorded(t, commits, 3<<10, false)
	other := script(14, 2)
	other[0][0].StateHash[0]++ // another history from the first record on
	foreign := recorded(t, other, 3<<10, false)
	segments := segmentsOf(t, disk)
	if len(segments) < 4 {
		t.Fatalf("%d segments", len(segments))
	}
	refused := func(what string, left vfs.FS) {
		t.Helper()
		got, _, err := replayAll(left, testDir, 0)
		if !errors.Is(err, ErrCorrupt) || !isPrefix(got, commits) && !isPrefix(got, other) {
			t.Errorf("%s: %d commits, %v; want %v", what, len(got), err, ErrCorrupt)
		}
	}
	for i, a := range segments {
		// Without its oldest segments a log is one that was pruned; Replay from a record
		// that is missing tells.
		left := disk.Clone()
		_ = left.Remove(a.name)
		if i > 0 {
			refused("deleted "+a.name, left)
		} else if _, _, err := replayAll(left, testDir, 1); !errors.Is(err, ErrMissing) {
			t.Errorf("deleted %s: %v, want %v", a.name, err, ErrMissing)
		}
		left = disk.Clone()
		put(t, left, a.name, contents(t, foreign, a.name))
		refused("foreign "+a.name, left)
		for j, b := range segments {
			if i == j {
				continue
			}
			left := disk.Clone()
			put(t, left, a.name, contents(t, disk, b.name))
			refused(fmt.Sprintf("%s in place of %s", b.name, a.name), left)
			put(t, left, b.name, contents(t, disk, a.name))
			refused(fmt.Sprintf("%s and %s swapped", a.name, b.name), left)
		}
		left = disk.Clone()
		put(t, left, segmentName(testDir, uint64(len(segments)+1)), contents(t, disk, a.name))
		refused("duplicated "+a.name+" at the end", left)
	}
	for n := 1; n < len(segments); n++ {
		left := disk.Clone()
		for _, g := range segments[len(segments)-n:] {
			_ = left.Remove(g.name)
		}
		refused(fmt.Sprintf("the newest %d deleted", n), left)
	}
	for n := range len(segments) {
		left := disk.Clone()
		put(t, left, filepath.Join(testDir, newestName), newest{index: uint64(n)}.encode())
		refused(fmt.Sprintf("records in a segment that newest, naming %d, does not know", n), left)
	}
	left := disk.Clone()
	_ = left.Remove(filepath.Join(testDir, newestName))
	refused("newest deleted", left)
	put(t, left, filepath.Join(testDir, newestName), contents(t, foreign, filepath.Join(testDir, newestName))[:31])
	refused("newest cut", left)
}

// TestARecordThatCannotBeReadIsDamage: the frame is as it was written, the record in it was not.
func TestARecordThatCannotBeReadIsDamage(t *testing.T) {
	for name, at := range map[string]int{"its format": 0, "its version": 3} {
		disk := newDisk(t)
		l, _ := open(t, config(disk))
		commitAll(t, l, [][]*ledger.Record{commitOf(1, 2, 1)})
		var e encoded
		if err := e.encode(commitOf(3, 2, 1)); err != nil {
			t.Fatal(err)
		}
		e.buf[e.starts[1]+frameBytes+at]++
		e.sums[1] = crc32.Checksum(e.buf[e.starts[1]+frameBytes:], castagnoli)
		l.mu.Lock()
		err := l.commitLocked(&e)
		l.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		closeLog(t, l)
		_, _, err = replayAll(disk, testDir, 0)
		var c *CorruptError
		if !errors.As(err, &c) || c.LastVersion != 3 || c.LastSlot != 103 || c.Offset <= headerBytes {
			t.Errorf("%s: %v, want damage after record 3", name, err)
		}
	}
}

func TestStrayFilesAreLeftAlone(t *testing.T) {
	commits := script(5, 2)
	disk := recorded(t, commits, 3<<10, true)
	strays := []string{"notes.txt", "1.wal", "00000000000000001.wal", "000000000000000x.wal", "0000000000000009.wal.broken",
		"0000000000000002.wal.bak", "other.tmp", "newest.old"}
	for _, name := range strays {
		put(t, disk, filepath.Join(testDir, name), []byte(name))
	}
	left := []string{"0000000000000002.wal.tmp", "newest.tmp", "0000000000000001.wal.broken.tmp"}
	for _, name := range left {
		put(t, disk, filepath.Join(testDir, name), []byte(name))
	}
	l, got := open(t, config(disk))
	wantCommits(t, "beside stray files", got, commits)
	closeLog(t, l)
	for _, name := range strays {
		if got := contents(t, disk, filepath.Join(testDir, name)); string(got) != name {
			t.Errorf("%s holds %q after Open", name, got)
		}
	}
	for _, name := range left {
		if _, err := disk.Open(filepath.Join(testDir, name)); err == nil {
			t.Errorf("%s, the remains of a crash, is still there", name)
		}
	}
}

// TestOpenRefusesAnotherLog: an end belongs to the log that it was found in.
func TestOpenRefusesAnotherLog(t *testing.T) {
	disk := recorded(t, script(5, 2), 3<<10, true)
	before := contents(t, disk, segmentName(testDir, 1))
	if _, err := Open(config(disk), End{}); err == nil {
		t.Error("Open with the end of an empty log opened one that is not")
	}
	if after := contents(t, disk, segmentName(testDir, 1)); !reflect.DeepEqual(before, after) {
		t.Error("and changed it")
	}
}
