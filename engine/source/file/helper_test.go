package file

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/ledger/ledgertest"
)

var must = ledgertest.Must

// write puts content into a file of that name in a new folder.
func write(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	writeFile(t, path, content)
	return path
}

// writeFile puts content into a file, and makes the folders above it.
func writeFile(t testing.TB, path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(content), 0o600))
}

// open opens a source whose log lines go to the returned buffer.
func open(t testing.TB, spec string) (*Source, *bytes.Buffer) {
	t.Helper()
	var lines bytes.Buffer
	s, err := Open(spec, slog.New(slog.NewTextHandler(&lines, nil)))
	if err != nil {
		t.Fatalf("Open(%q): %v", spec, err)
	}
	return s, &lines
}

// run returns what a source emits until it ends, and how it ends.
func run(s *Source, from *ledger.ResumePoint) ([]ledger.Event, error) {
	var events []ledger.Event
	err := s.Run(context.Background(), from, func(_ context.Context, e ledger.Event) error {
		events = append(events, e)
		return nil
	})
	return events, err
}

// events returns all that a specification emits.
func events(t testing.TB, spec string) []ledger.Event {
	t.Helper()
	s, _ := open(t, spec)
	got, err := run(s, nil)
	if err != nil {
		t.Fatalf("Run of %s: %v", spec, err)
	}
	return got
}

func gzipped(t testing.TB, content string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(content))
	must(t, errors.Join(err, z.Close()))
	return b.String()
}

func zstded(t testing.TB, content string) string {
	t.Helper()
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	must(t, err)
	defer z.Close()
	return string(z.EncodeAll([]byte(content), nil))
}

// keyOf returns a key or a hash that no other seed has, testKey its base58 text.
func keyOf(seed byte) ledger.Pubkey { return ledger.Pubkey{1: seed, 31: 1} }

func testKey(seed byte) string { return keyOf(seed).String() }

// recorded returns the files of the recorded data that a pattern names.
func recorded(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(datatest.Path(t, "."), pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
	}
	return paths
}
