package unpack

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"syscall"
	"testing"
	"testing/iotest"
)

func TestErrorsNameThePacking(t *testing.T) {
	tests := map[string]struct {
		err  error
		want string
		is   error // what it matches, and else not
	}{
		"cut":     {io.ErrUnexpectedEOF, "its zstd packing ends too early", nil},
		"damaged": {context.Canceled, "its zstd packing is damaged: context canceled", context.Canceled},
		"the end": {io.EOF, "EOF", io.EOF},
	}
	for name, tt := range tests {
		_, err := Reader{"zstd", iotest.ErrReader(tt.err)}.Read(make([]byte, 1))
		if err == nil || err.Error() != tt.want || errors.Is(err, tt.err) != (tt.is != nil) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

func TestReasonLeavesThePathOut(t *testing.T) {
	if got := Reason(&fs.PathError{Op: "open", Path: "secret", Err: syscall.EACCES}); got != syscall.EACCES {
		t.Errorf("Reason: %v", got)
	}
	if got := Reason(io.EOF); got != io.EOF {
		t.Errorf("Reason: %v", got)
	}
}
