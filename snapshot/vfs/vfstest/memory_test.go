package vfstest

import (
	"errors"
	"fmt"
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
	write(f, 4*pageBytes, 0, 4*pageBytes)
}

func TestSpaceIsGivenBack(t *testing.T) {
	m := NewMemory()
	m.SetCapacity(100 * pageBytes)
	f := written(t, m, "file", strings.Repeat("x", 5*pageBytes))
	for i, step := range []struct {
		do    func() error
		pages int64
	}{
		{func() error { return nil }, 5},
		{func() error { return f.Preallocate(20 * pageBytes) }, 20},
		{func() error { _, err := f.WriteAt([]byte("x"), 30*pageBytes); return err }, 21},
		{func() error { return f.Preallocate(25 * pageBytes) }, 26},
		{func() error { return f.Truncate(2*pageBytes + 1) }, 3},
		{func() error { return f.Truncate(50 * pageBytes) }, 3},
		{func() error { return m.WriteFile("other", make([]byte, pageBytes)) }, 4},
		{func() error { return m.Rename("other", "file") }, 1},
		{func() error { return m.WriteFile("dir/new", make([]byte, 2*pageBytes)) }, 3},
		{func() error { return m.Overwrite("dir/new", 2*pageBytes, []byte("x")) }, 4},
		{func() error { return m.WriteFile("dir/new", nil) }, 1},
		{func() error { return m.Remove("dir/new") }, 1},
	} {
		must(t, step.do())
		free, err := m.FreeBytes(".")
		must(t, err)
		got := fmt.Sprint(m.UsedBytes()/pageBytes, free/pageBytes, m.Clone().UsedBytes()/pageBytes)
		if want := fmt.Sprint(step.pages, 100-step.pages, step.pages); got != want || m.Crash(1, 1).UsedBytes() > m.UsedBytes() {
			t.Errorf("after step %d the pages used, free and of a copy are %s, want %s", i, got, want)
		}
	}
}
