package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ledgerd/bench"
)

func TestAllIsEveryScenarioOfEveryCommand(t *testing.T) {
	var s said
	if code := run(t.Context(), []string{"all", "--help"}, s.streams()); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	all := bench.All(1)
	seen := map[string]bool{}
	for _, scenario := range all {
		if seen[scenario.Name] {
			t.Errorf("two scenarios are called %s", scenario.Name)
		}
		seen[scenario.Name] = true
		if !strings.Contains(s.out.String(), scenario.Name+": ") {
			t.Errorf("help does not name %s", scenario.Name)
		}
	}
	for _, command := range [][]bench.Scenario{bench.REST(bench.RESTOptions{}), bench.Mixed(bench.RESTOptions{}), bench.WebSocket(), bench.Ingest(), bench.Recover(1), bench.Memory(1), bench.Cluster()} {
		for _, scenario := range command {
			if !seen[scenario.Name] {
				t.Errorf("%s is missing", scenario.Name)
			}
		}
	}
}

// What was kept of other scenarios stays, and the page can be written again from all of it.
func TestResultsAreKeptBesideThePage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "RESULTS.md")
	for range 2 {
		var s said
		flags := loadFlags{Rounds: 1, Duration: 1, Scale: 1, Ledgerd: ledgerd(t), Dir: t.TempDir(), Markdown: page}
		if err := flags.run(t.Context(), s.streams(), scenarios(new([]bench.Env))); err == nil || !strings.Contains(err.Error(), "cannot run broken") {
			t.Fatalf("err = %v", err)
		}
	}
	want, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(want), "`ledgerbench as it was typed`") || strings.Count(string(want), "## slow") != 1 || strings.Contains(string(want), "broken") {
		t.Errorf("%v; the page is\n%s", err, want)
	}
	if err := os.Remove(page); err != nil {
		t.Fatal(err)
	}
	var s said
	if code := run(t.Context(), []string{"results", page}, s.streams()); code != exitOK {
		t.Errorf("exit code %d, said %q", code, s.err.String())
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != string(want) {
		t.Errorf("%v; the page is\n%s", err, got)
	}
}

func TestFlagsOfAServerThatRuns(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"ingest needs its own":        {[]string{"ingest", "--url", "http://127.0.0.1:1"}, "ingest needs a server that it starts itself"},
		"recover needs its own":       {[]string{"recover", "--url", "http://127.0.0.1:1"}, "recover needs a server that it starts itself"},
		"memory needs its own":        {[]string{"memory", "--url", "http://127.0.0.1:1"}, "transactions needs a server that it starts itself"},
		"a scenario needs its own":    {[]string{"ws", "--scenario", "storm", "--url", "http://127.0.0.1:1"}, "storm needs a server that it starts itself"},
		"nobody is there":             {[]string{"rest", "--url", "http://127.0.0.1:1"}, "cannot reach the server"},
		"TLS":                         {[]string{"all", "--url", "https://127.0.0.1:1"}, "past its proxy"},
		"a process without a server":  {[]string{"rest", "--pid", "1", "--ledgerd", ledgerd(t)}, "need --url"},
		"operators without a server":  {[]string{"mixed", "--ops-url", "http://127.0.0.1:1", "--ledgerd", ledgerd(t)}, "need --url"},
		"nothing is kept to be shown": {[]string{"results"}, "page"},
	} {
		var s said
		if code := run(t.Context(), tt.args, s.streams()); code != exitUsage || !strings.Contains(s.err.String(), tt.want) {
			t.Errorf("%s: exit code %d, said %q", name, code, s.err.String())
		}
	}
}
