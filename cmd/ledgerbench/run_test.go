package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// said is what a command wrote.
type said struct{ out, err bytes.Buffer }

func (s *said) streams() *streams {
	return &streams{&s.out, &s.err, "ledgerbench as it was typed"}
}

// does runs a command and returns its exit code and what it wrote.
func does(t *testing.T, args ...string) (code int, s *said) {
	t.Helper()
	s = new(said)
	return run(t.Context(), args, s.streams()), s
}

// What run writes, report takes.
func TestReportIsWrittenFromRecords(t *testing.T) {
	dir := t.TempDir()
	records, page := filepath.Join(dir, "records.txt"), filepath.Join(dir, "RESULTS.md")
	const text = "commit: 0123456789ab\nchanges: no\nrounds: 1\n\nBenchmarkAccount/subject=ledgerd 1 5 req/s\n"
	must(t, os.WriteFile(records, []byte(text), 0o600))
	if code, s := does(t, "report", records, page); code != exitOK {
		t.Fatalf("exit code %d, said %q", code, &s.err)
	}
	if got, err := os.ReadFile(page); err != nil || !strings.Contains(string(got), "## Goals") || !strings.Contains(string(got), "- **ledgerd**: 5 req/s") {
		t.Errorf("%v\n%s", err, got)
	}
}
