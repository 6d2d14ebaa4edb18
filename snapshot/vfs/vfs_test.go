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
