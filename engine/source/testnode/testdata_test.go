package testnode

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorded returns the path of a file of the recorded data, or skips the test.
func recorded(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("LEDGERD_TESTDATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared", "data")
		if _, err := os.Stat(dir); err != nil {
			t.Skip("no recorded data: set LEDGERD_TESTDATA")
		}
	}
	return filepath.Join(dir, filepath.FromSlash(name))
}

// opened opens a recorded file, unpacked.
func opened(t testing.TB, path string) io.Reader {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if !strings.HasSuffix(path, ".gz") {
		return f
	}
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func readJSON(t testing.TB, path string, to any) {
	t.Helper()
	if err := json.NewDecoder(opened(t, path)).Decode(to); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
