package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run of one scenario renews its part and leaves the others.
func TestResultsAreRenewedScenarioByScenario(t *testing.T) {
	page := filepath.Join(t.TempDir(), "RESULTS.md")
	folder := filepath.Join(filepath.Dir(page), "results")
	keep := func(run *Report, result *Result) *Results {
		t.Helper()
		results, err := OpenResults(page)
		if err == nil {
			err = results.Keep(run, result)
		}
		if err == nil {
			err = results.WritePage([]string{"idle", "firehose"})
		}
		if err != nil {
			t.Fatal(err)
		}
		return results
	}
	first := sampleReport()
	keep(first, first.Results[0])
	keep(first, first.Results[1])
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) != 4 {
		t.Fatalf("files: %v, %v", files, err)
	}

	again := sampleReport()
	again.Command = "ledgerbench again"
	result := &Result{Scenario: "firehose"}
	result.Row("ledgerd").Add("frames", "M/s", 99)
	keep(again, result)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	if strings.Count(got, "`ledgerbench again`") != 1 || strings.Count(got, "`ledgerbench ws --peers`") != 1 || strings.Contains(got, "25.2") || !strings.Contains(got, "| 99 |") {
		t.Errorf("the page is\n%s", got)
	}
	if strings.Index(got, "\n## idle\n") > strings.Index(got, "\n## firehose\n") {
		t.Errorf("the scenarios are not in the order asked for:\n%s", got)
	}
	if strings.Contains(got, "at another") { // there is no goal left
		t.Errorf("the page warns of the scale:\n%s", got)
	}
	if !strings.Contains(got, "(results/firehose-frames.svg)") {
		t.Errorf("the page shows no plot:\n%s", got)
	}
	if _, err := os.Stat(filepath.Join(folder, "firehose-bytes.svg")); !os.IsNotExist(err) {
		t.Errorf("an old plot is left: %v", err)
	}
	results, err := OpenResults(page)
	if err == nil {
		err = results.WritePage([]string{"idle", "firehose"})
	}
	if same, readErr := os.ReadFile(page); err != nil || readErr != nil || string(same) != got {
		t.Errorf("written again from what was kept the page is\n%s\n%v", same, err)
	}
}

func TestAQuotientByNothingIsNoValue(t *testing.T) {
	var r Row
	zero := 0.0
	for _, v := range []float64{1 / zero, -1 / zero, zero / zero, 5} {
		r.Add("a", "", v)
	}
	if got := r.figure("a").Values; len(got) != 1 || got[0] != 5 {
		t.Errorf("values: %v", got)
	}
}

func TestResultsThatAreNoneAreRefused(t *testing.T) {
	page := filepath.Join(t.TempDir(), "RESULTS.md")
	folder := filepath.Join(filepath.Dir(page), "results")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"{", `{"results":[]}`, `{"results":[{"scenario":"other"}]}`} {
		if err := os.WriteFile(filepath.Join(folder, "idle.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenResults(page); err == nil || !strings.Contains(err.Error(), "idle.json") {
			t.Errorf("%s: err = %v", text, err)
		}
	}
}

func TestRevisionIsThatOfTheProgram(t *testing.T) {
	if got := Revision(program(t, "ledgerd")); !strings.HasPrefix(got, "ledgerd of ") {
		t.Errorf("revision %q", got)
	}
	if got := Revision(filepath.Join(t.TempDir(), "none")); got != "none of an unknown commit" {
		t.Errorf("revision of no program: %q", got)
	}
}
