// Package datatest finds the recorded ledger data that tests read: real blocks, streams and accounts. The
// data is in the folder that LEDGERD_TESTDATA names or, without it, beside the project in
// shared/data. It is no part of the project; tests that need it are skipped where it is missing.
package datatest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Path returns the path of a file or folder of the data; name is separated by slashes. If LEDGERD_TESTDATA is
// set and the data is missing or incomplete, the test fails.
func Path(t testing.TB, name string) string {
	t.Helper()
	dir, required := os.LookupEnv("LEDGERD_TESTDATA")
	if !required {
		dir = filepath.Join(root(), "../shared/data")
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && !required {
		t.Skip("no recorded ledger data: set LEDGERD_TESTDATA to its folder")
	} else if err != nil {
		t.Fatalf("recorded ledger data: %v", err)
	}
	path := filepath.Join(dir, filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("recorded ledger data is incomplete: %v", err)
	}
	return path
}

// root returns the folder of the project, in one of whose folders a test runs.
func root() string {
	dir, _ := os.Getwd()
	for dir != "/" {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

// Read returns the content of a file, decompressed if its name ends in .gz.
func Read(t testing.TB, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := io.Reader(f)
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return content
}

// JSON decodes a JSON file; where v leaves the type open, numbers come as json.Number.
func JSON(t testing.TB, path string, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(Read(t, path)))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
