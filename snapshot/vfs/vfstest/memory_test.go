package vfstest

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestFullDiskTakesWhatFits(t *testing.T) {
	m := NewMemory()
	m.SetCapacity(3*pageBytes + 100)
	f := written(t, m, "file", "x")
	n, err := f.WriteAt(make([]byte, 4*pageBytes), 10)
	if n != 3*pageBytes-10 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("WriteAt of 4 pages at 10, where 3 fit = %d, %v, want %d, %v", n, err, 3*pageBytes-10, syscall.ENOSPC)
	}
	if size, _ := f.Size(); size != 3*pageBytes {
		t.Errorf("size after the short write = %d, want %d", size, 3*pageBytes)
	}
	other := written(t, m, "other", "")
	if n, err := other.WriteAt([]byte("x"), 0); n != 0 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("WriteAt to a full disk = %d, %v, want 0, %v", n, err, syscall.ENOSPC)
	}
	if n, err := f.WriteAt([]byte("over"), 100); n != 4 || err != nil {
		t.Errorf("WriteAt over what is there = %d, %v, want it to need no space", n, err)
	}
	must(t, f.Truncate(1<<30))
	m.SetCapacity(m.UsedBytes() + pageBytes)
	if n, err := other.WriteAt([]byte("x"), 0); n != 1 || err != nil {
		t.Errorf("WriteAt after one page became free = %d, %v, want 1", n, err)
	}
}

func TestPreallocateTakesTheSpace(t *testing.T) {
	m := NewMemory()
	m.SetCapacity(10 * pageBytes)
	f := written(t, m, "file", "x")
	if err := f.Preallocate(11 * pageBytes); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Preallocate of more than there is: err = %v, want %v", err, syscall.ENOSPC)
	}
	if size, _ := f.Size(); size != 1 || m.UsedBytes() != pageBytes {
		t.Errorf("after it failed the size is %d and %d bytes are used, want nothing changed", size, m.UsedBytes())
	}
	must(t, f.Preallocate(10*pageBytes))
	if free, _ := m.FreeBytes("."); free != 0 {
		t.Errorf("FreeBytes = %d after all was preallocated, want 0", free)
	}
	if n, err := f.WriteAt(make([]byte, 10*pageBytes), 0); n != 10*pageBytes || err != nil {
		t.Errorf("WriteAt of what was preallocated = %d, %v, want all of it", n, err)
	}
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
	used("replacing the file while it is open", 4)
	must(t, f.Close())
	used("closing it", 1)
	must(t, m.WriteFile("dir/new", make([]byte, 2*pageBytes)))
	must(t, m.Overwrite("dir/new", 2*pageBytes, []byte("x")))
	used("writing without a file open", 4)
	must(t, m.WriteFile("dir/new", nil))
	must(t, m.Remove("dir/new"))
	used("removing it", 1)
}

func TestFilesWrittenByNameSurvive(t *testing.T) {
	m := NewMemory()
	must(t, m.WriteFile("a/b/file", []byte("0123456789")))
	must(t, m.WriteFile("a/other", nil))
	must(t, m.Overwrite("a/b/file", 3, []byte("xyz")))
	must(t, m.WriteFile("a/other", []byte("new")))
	for _, copied := range []*Memory{m, m.Crash(0, 1), m.Crash(1, 1), m.Clone()} {
		if got, want := copied.Paths(), []string{"a/b/file", "a/other"}; !slices.Equal(got, want) {
			t.Errorf("Paths = %q, want %q", got, want)
		}
		for name, want := range map[string]string{"a/b/file": "012xyz6789", "a/other": "new"} {
			if got, err := copied.ReadFile(name); err != nil || string(got) != want {
				t.Errorf("ReadFile(%s) = %q, %v, want %q", name, got, err, want)
			}
		}
	}
	for name, err := range map[string]error{
		"overwrite nothing":     m.Overwrite("none", 0, []byte("x")),
		"write a directory":     m.WriteFile("a/b", nil),
		"write below a file":    m.WriteFile("a/other/file", nil),
		"overwrite a directory": m.Overwrite("a/b", 0, []byte("x")),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestPreallocatedFilesTakeNoMemory(t *testing.T) {
	m := NewMemory()
	f := written(t, m, "file", "x")
	must(t, f.Preallocate(64<<20))
	must(t, f.Sync())
	n := m.names.get("file")
	if len(n.live.pages) != 1 || len(n.durable.pages) != 1 {
		t.Errorf("64 MiB preallocated and one byte written are %d pages, %d of them durable, want 1", len(n.live.pages), len(n.durable.pages))
	}
	p := []byte("x")
	if k, err := f.ReadAt(p, 64<<20-1); k != 1 || err != nil || p[0] != 0 {
		t.Errorf("the last byte reads %d, %v, want 0", p[0], err)
	}
}

// TestSyncCopiesNoBytes counts what syncs of appends to a long file allocate: were it the file,
// it would be hundreds of times as much.
func TestSyncCopiesNoBytes(t *testing.T) {
	m := NewMemory()
	f := written(t, m, "file", "")
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
