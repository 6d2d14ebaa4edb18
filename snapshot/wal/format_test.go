package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

// F51: a log of every kind of record, two segments, is read as format version 1 wrote it, and written like that. One of a newer
// format is refused.
func TestReleasedFormatsStayReadable(t *testing.T) {
	commits := script(4, 1)
	disk := recorded(t, commits, 2<<10, true)
	dir := filepath.Join("testdata", "v1")
	stored := vfstest.NewMemory()
	for _, name := range []string{"0000000000000001.wal", "0000000000000002.wal", "newest"} {
		path, golden := filepath.Join(testDir, name), filepath.Join(dir, name)
		b := contents(t, disk, path)
		if *update {
			must(t, errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(golden, b, 0o644)))
		}
		want := ledgertest.ReadFile(t, golden)
		ledgertest.Holds(t, bytes.Equal(b, want), "%s is written differently than in testdata: the format changed", name)
		put(t, stored, path, want)

		binary.LittleEndian.PutUint32(b[8:], 9)
		other := disk.Clone()
		put(t, other, path, b)
		if _, _, err := replayAll(other, testDir, 0); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: the version alone is another: %v, want %v", name, err, ErrCorrupt)
		}
		b[12]++ // the rest, too, as in another layout
		put(t, other, path, b)
		_, _, err := replayAll(other, testDir, 0)
		var format *vfs.FormatError
		if wantErr := (vfs.FormatError{File: path, Version: 9, Newest: 1}); !errors.As(err, &format) || *format != wantErr {
			t.Errorf("%s: %v, want %v", name, err, &wantErr)
		}
	}
	end := wantLog(t, "testdata", stored, commits)
	if want := fmt.Sprintf("the log ends after record %d, at slot %d, in %s at byte %d",
		end.Version(), end.Slot(), segmentName(testDir, 2), end.offset); end.String() != want {
		t.Errorf("the end is told as %q, want %q", end, want)
	}
}

// FuzzOpen puts bytes in place of a segment: no panic, no memory for lengths that cannot be, and
// never a record that was not committed.
func FuzzOpen(f *testing.F) {
	commits := script(6, 1)
	disk := recorded(f, commits, 64<<10, false)
	path := segmentName(testDir, 1)
	whole := contents(f, disk, path)[:6<<10]
	f.Add(whole)
	f.Add(whole[:3000])
	f.Fuzz(func(t *testing.T, b []byte) {
		left := disk.Clone()
		put(t, left, path, b)
		var got [][]*ledger.Record
		l, err := Open(t.Context(), config(left), 0, collect(&got))
		var format *vfs.FormatError
		switch {
		case err != nil && !errors.Is(err, ErrCorrupt) && !errors.As(err, &format):
			t.Fatalf("Open: %v", err)
		case err == nil:
			must(t, errors.Join(l.begin(), l.Close()))
		}
		ledgertest.MustHold(t, isPrefix(got, commits), "Open made up commits: %d", len(got))
	})
}
