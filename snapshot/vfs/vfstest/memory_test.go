package vfstest

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"ledgerd/snapshot/vfs"
)

func TestAFullDiskTakesWhatFits(t *testing.T) {
	m := NewMemory()
	f, other := written(t, m, "file", "x"), written(t, m, "other", "")
	write := func(f vfs.File, length int, off int64, fit int) {
		t.Helper()
		n, err := f.WriteAt(make([]byte, length), off)
		if full := errors.Is(err, syscall.ENOSPC); n != fit || full != (fit < length) || !full && err != nil {
			t.Errorf("WriteAt(%d bytes, %d) = %d, %v, want %d", length, off, n, err, fit)
		}
	}
	m.SetCapacity(3*pageBytes + 100)
	write(f, 4*pageBytes, 10, 3*pageBytes-10)
	if size, _ := f.Size(); size != 3*pageBytes {
		t.Errorf("size after the short write = %d, want %d", size, 3*pageBytes)
	}
	write(other, 1, 0, 0)
	write(f, 4, 100, 4) // what is there
	must(t, f.Truncate(1<<30))
	m.SetCapacity(5 * pageBytes)
	write(other, 1, 0, 1)
	if err := f.Preallocate(5 * pageBytes); !errors.Is(err, syscall.ENOSPC) || m.UsedBytes() != 4*pageBytes {
		t.Errorf("Preallocate of more than there is: %v, and %d bytes are used", err, m.UsedBytes())
	}
	must(t, f.Preallocate(4*pageBytes))
	if free, _ := m.FreeBytes("."); free != 0 {
		t.Errorf("FreeBytes = %d after all was preallocated, want 0", free)
	}
	write(f, 4*pageBytes, 0, 4*pageBytes)
}

func TestSpaceIsGivenBack(t *testing.T) {
	m := NewMemory()
	m.SetCapacity(100 * pageBytes)
	used := func(after string, pages int64) {
		t.Helper()
		free, _ := m.FreeBytes(".")
		if got := m.UsedBytes(); got != pages*pageBytes || int64(free) != (100-pages)*pageBytes {
			t.Errorf("after %s %d bytes are used and %d free, want %d used", after, got, free, pages*pageBytes)
		}
		for _, copied := range []*Memory{m.Crash(1, 1), m.Clone()} {
			if got := copied.UsedBytes(); got > pages*pageBytes {
				t.Errorf("after %s a copy uses %d bytes, want at most %d", after, got, pages*pageBytes)
			}
		}
	}
	f := written(t, m, "file", strings.Repeat("x", 5*pageBytes))
	used("a write", 5)
	must(t, f.Preallocate(20*pageBytes))
	used("preallocating", 20)
	_, err := f.WriteAt([]byte("x"), 30*pageBytes)
	must(t, err)
	used("a write after a hole", 21)
	must(t, f.Preallocate(25*pageBytes))
	used("preallocating more", 26)
	must(t, f.Truncate(2*pageBytes+1))
	used("a cut", 3)
	must(t, f.Truncate(50*pageBytes))
	used("a cut to more", 3)
	written(t, m, "other", strings.Repeat("x", pageBytes))
	must(t, m.Rename("other", "file"))
	used("replacing the file", 1)
	must(t, m.WriteFile("dir/new", make([]byte, 2*pageBytes)))
	must(t, m.Overwrite("dir/new", 2*pageBytes, []byte("x")))
	used("writing without a file open", 4)
	if got := contentOf(t, m.Crash(0, 1), "dir/new"); len(got) != 2*pageBytes+1 || got[2*pageBytes] != 'x' {
		t.Errorf("what was written without a file open does not survive a crash: %d bytes", len(got))
	}
	must(t, m.WriteFile("dir/new", nil))
	must(t, m.Remove("dir/new"))
	used("removing it", 1)
	for name, err := range map[string]error{
		"overwrite nothing":  m.Overwrite("none", 0, []byte("x")),
		"write a directory":  m.WriteFile("dir", nil),
		"write below a file": m.WriteFile("file/file", nil),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestFilesTakeTheMemoryOfWhatWasWritten and no sync copies all of it: that would be hundreds of times as much.
func TestFilesTakeTheMemoryOfWhatWasWritten(t *testing.T) {
	m := NewMemory()
	f := written(t, m, "file", "x")
	must(t, f.Preallocate(1<<30))
	must(t, f.Sync())
	_, err := f.WriteAt(bytes.Repeat([]byte("x"), 16<<20), 0)
	must(t, err)
	must(t, f.Sync())
	const appends = 1000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range int64(appends) {
		_, err := f.WriteAt([]byte("a little record"), 16<<20+15*i)
		must(t, err)
		must(t, f.Sync())
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / appends; got > 16*pageBytes {
		t.Errorf("an append of 15 bytes to 16 MiB and its sync allocate %d bytes, want at most %d", got, 16*pageBytes)
	}
}
