package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ledgerd/bench"
)

func TestReportIsWrittenInEveryFormAskedFor(t *testing.T) {
	var s said
	dir := t.TempDir()
	flags := loadFlags{
		Scenario: []string{"slow"}, Rounds: 1, Duration: 1, Scale: 1, Ledgerd: ledgerd(t), Dir: t.TempDir(),
		HTML: filepath.Join(dir, "report.html"), SVG: filepath.Join(dir, "plots"),
	}
	if err := flags.run(t.Context(), s.streams(), scenarios(new([]bench.Env))); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"report.html": "<h2>slow</h2>", "plots/slow-speed.svg": "</svg>"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %v\n%s", name, err, b)
		}
	}
}

func TestDataCommandsSayWhatTheyDo(t *testing.T) {
	for _, command := range []string{"ingest", "recover", "memory"} {
		var s said
		if code := run(t.Context(), []string{command, "--help"}, s.streams()); code != exitOK || !strings.Contains(s.out.String(), command+": ") {
			t.Errorf("%s --help: exit code %d, said\n%s", command, code, s.out.String())
		}
		if takes := strings.Contains(s.out.String(), "--accounts"); takes != (command != "ingest") {
			t.Errorf("%s: --accounts is known: %v", command, takes)
		}
	}
	var s said
	if code := run(t.Context(), []string{"memory", "--accounts", "0", "--ledgerd", ledgerd(t)}, s.streams()); code != exitUsage {
		t.Errorf("no accounts: exit code %d, said %q", code, s.err.String())
	}
}
