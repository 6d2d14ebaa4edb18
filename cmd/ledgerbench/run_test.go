package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ledgerd/bench"
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

func TestHelpNamesEveryScenario(t *testing.T) {
	for _, words := range [][]string{{"run", "--help"}, {"help", "run"}} {
		code, s := does(t, words...)
		for _, scenario := range bench.Scenarios {
			if code != exitOK || !strings.Contains(s.out.String(), scenario.Name+": ") {
				t.Errorf("%q: exit code %d; %s is not in\n%s", words, code, scenario.Name, &s.out)
			}
		}
	}
}

// Help names no variable of the environment, from which nothing is taken, and the kind of what a list is of once.
func TestHelpOfConnectionsSaysWhatIsTaken(t *testing.T) {
	for _, command := range []string{"load", "listen"} {
		_, s := does(t, command, "--help")
		if text := s.out.String(); strings.Contains(text, "($") || !strings.Contains(text, "--from=ADDRESS,... ") {
			t.Errorf("%s: %s", command, text)
		}
	}
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
