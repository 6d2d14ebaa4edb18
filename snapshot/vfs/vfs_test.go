package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"testing"
)

func TestWantOfSpaceIsKnownByAnyOfItsNames(t *testing.T) {
	tests := map[string]struct {
		err  error
		want bool
	}{
		"nothing":         {nil, false},
		"full disk":       {&fs.PathError{Op: "write", Path: "a", Err: syscall.ENOSPC}, true},
		"full quota":      {&fs.PathError{Op: "open", Path: "a", Err: syscall.EDQUOT}, true},
		"short write":     {fmt.Errorf("cannot write: %w", io.ErrShortWrite), true},
		"broken disk":     {&fs.PathError{Op: "write", Path: "a", Err: syscall.EIO}, false},
		"read-only disk":  {syscall.EROFS, false},
		"file too large":  {syscall.EFBIG, false},
		"joined with one": {errors.Join(syscall.EIO, syscall.ENOSPC), true},
	}
	for name, tt := range tests {
		if got := IsFull(tt.err); got != tt.want {
			t.Errorf("%s: IsFull(%v) = %v, want %v", name, tt.err, got, tt.want)
		}
	}
}

// TestFullMemoryIsFull holds the disk for tests to the same test as the real one.
func TestFullMemoryIsFull(t *testing.T) {
	m := NewMemory()
	f, err := m.Create("a")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m.SetCapacity(pageBytes)
	if err := f.Preallocate(2 * pageBytes); !IsFull(err) {
		t.Errorf("Preallocate on a full disk: err = %v, want one that IsFull", err)
	}
	faulty := NewFaulty(m, Plan{Call: 1, Kinds: KindWriteAt, Fault: Short})
	g, err := faulty.OpenWrite("a")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if _, err := g.WriteAt([]byte("abcd"), 0); !IsFull(err) {
		t.Errorf("a short write: err = %v, want one that IsFull", err)
	}
}
