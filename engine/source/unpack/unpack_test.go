package unpack

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"ledgerd/engine/ledger/ledgertest"
)

func TestErrorsNameThePacking(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want string
		is   error // what it matches, and else not
	}{
		"cut":     {io.ErrUnexpectedEOF, "its zstd packing ends too early", nil},
		"damaged": {context.Canceled, "its zstd packing is damaged: context canceled", context.Canceled},
		"the end": {io.EOF, "EOF", io.EOF},
	} {
		_, err := Reader{"zstd", iotest.ErrReader(tt.err)}.Read(make([]byte, 1))
		if err == nil || err.Error() != tt.want || errors.Is(err, tt.err) != (tt.is != nil) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

func TestSmallFilesAreReadUpToABound(t *testing.T) {
	three := filepath.Join(t.TempDir(), "three")
	ledgertest.Must(t, os.WriteFile(three, []byte("abc"), 0o600))
	for _, tt := range []struct {
		path string
		most int64
		want string
	}{
		{three, 4, "abc"},
		{three, 3, "abc"},
		{three, 2, "it has more than 2 bytes"},
		{"/dev/zero", 1 << 10, "it has more than 1024 bytes"},
		{three + "s", 3, "no such file or directory"},
		{filepath.Dir(three), 3, "is a directory"},
	} {
		got, err := ReadSmall(tt.path, tt.most)
		if err != nil {
			got = []byte(err.Error())
		}
		ledgertest.Equal(t, string(got), tt.want, "%s, at most %d bytes", tt.path, tt.most)
	}
}
