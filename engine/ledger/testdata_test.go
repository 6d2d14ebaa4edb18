package ledger

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// recorded returns the path of a file or folder of recorded ledger data.
func recorded(t testing.TB, name string) string {
	t.Helper()
	dir, required := os.LookupEnv("LEDGERD_TESTDATA")
	if !required {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && !required {
		t.Skip("no recorded ledger data: set LEDGERD_TESTDATA to its folder")
	} else if err != nil {
		t.Fatalf("recorded ledger data: %v", err)
	}
	return filepath.Join(dir, filepath.FromSlash(name))
}

// readRecorded decodes a JSON file of recorded data, gzipped or not.
func readRecorded(t testing.TB, path string, v any) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	if err := json.NewDecoder(r).Decode(v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
