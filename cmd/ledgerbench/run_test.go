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
	return &streams{strings.NewReader(""), &s.out, &s.err, "ledgerbench as it was typed"}
}

// does runs a command and returns its exit code and what it wrote.
func does(t *testing.T, args ...string) (code int, s *said) {
	t.Helper()
	s = new(said)
	return run(t.Context(), args, s.streams()), s
}

// refusal is a command that cannot be carried out.
type refusal struct {
	args string
	code int
	want string // in the one line that is said
}

// refuses sees that each is refused in one line.
func refuses(t *testing.T, refusals []refusal) {
	t.Helper()
	for _, tt := range refusals {
		code, s := does(t, strings.Fields(tt.args)...)
		if lines := strings.Count(s.err.String(), "\n"); code != tt.code || lines != 1 || !strings.Contains(s.err.String(), tt.want) {
			t.Errorf("%q: exit code %d, said %q; want %d and one line about %q", tt.args, code, &s.err, tt.code, tt.want)
		}
	}
}

func TestHelpNamesEveryScenario(t *testing.T) {
	code, s := does(t, "run", "--help")
	for _, scenario := range bench.Scenarios {
		if code != exitOK || !strings.Contains(s.out.String(), scenario.Name+": ") {
			t.Errorf("exit code %d; %s is not in\n%s", code, scenario.Name, &s.out)
		}
	}
}

func TestWrongUseIsRefusedInOneLine(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "records.txt")
	must(t, os.WriteFile(empty, nil, 0o600))
	program, err := os.Executable()
	must(t, err)
	refuses(t, []refusal{
		{"", exitUsage, "expected one of"},
		{"run nothing", exitUsage, `there is no scenario "nothing"`},
		{"run --rounds 0", exitUsage, "must be above 0"},
		{"run --ledgerd /nowhere/ledgerd", exitUsage, "there is no ledgerd to load"},
		{"run ingest --output /nowhere/records --ledgerd " + program, exitUsage, "/nowhere/records"},
		{"report " + empty + " " + filepath.Join(t.TempDir(), "page.md"), exitFailure, "does not say which revision"},
		{"report /nowhere/records page.md", exitUsage, "/nowhere/records"},
	})
}

// What run writes, report takes.
func TestReportIsWrittenFromRecords(t *testing.T) {
	dir := t.TempDir()
	records, page := filepath.Join(dir, "records.txt"), filepath.Join(dir, "RESULTS.md")
	const text = "commit: 0123456789ab\nchanges: no\nrounds: 1\n\n" +
		"BenchmarkAccount/subject=ledgerd 1 5 req/s\nBenchmarkPaced/subject=ledgerd 1 5 p50-ms 9 p99-ms\n"
	must(t, os.WriteFile(records, []byte(text), 0o600))
	if code, s := does(t, "report", records, page); code != exitOK {
		t.Fatalf("exit code %d, said %q", code, &s.err)
	}
	for name, want := range map[string]string{"RESULTS.md": "## Goals", "throughput.svg": "ledgerd</text>", "percentiles.svg": "<polyline"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}
