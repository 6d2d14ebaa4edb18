package report

import (
	"bytes"
	"flag"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"

	"ledgerd/engine/ledger/ledgertest"
)

var must = ledgertest.Must

var update = flag.Bool("update", false, "write the golden files anew")

// clean is the configuration of a run that may be reported.
func clean() []benchfmt.Config {
	var config []benchfmt.Config
	for _, line := range [][2]string{{"commit", "0123456789ab"}, {"changes", "no"}, {"rounds", "6"}, {"cpu", "a processor"}} {
		config = append(config, benchfmt.Config{Key: line[0], Value: []byte(line[1]), File: true})
	}
	return config
}

// measured writes what a run might have found, and reads it again.
func measured(t *testing.T) *File {
	t.Helper()
	var text bytes.Buffer
	w := NewWriter(&text, clean())
	for round := range 6 {
		more := float64(round)
		w.Record("account", "ledgerd", 1000, []Figure{{"req/s", 110_000 + 100*more}, {"p99-ms", 2 + more}})
		w.Record("account", "other", 1000, []Figure{{"req/s", 100_000}, {"p99-ms", 4}})
		w.Record("lag", "replicas=1", 1000, []Figure{{"p50-ms", 0.5}, {"p99-ms", 12 + more}, {"errors", 0}})
		w.Record("lag", "replicas=3", 1000, []Figure{{"p50-ms", 0.25}})
		w.Record("lag", "no-errors", 1000, []Figure{{"p50-ms", 0}})
	}
	for range 2 { // a note is written once
		w.Note("lag", "all nodes share\none disk")
	}
	must(t, w.Err())
	f, err := Read(text.Bytes(), "run.txt")
	must(t, err)
	return f
}

var goals = []Goal{
	{Scenario: "account", Subject: "ledgerd", Unit: "req/s", Of: "other", AtLeast: 1, Why: "nobody is slower"},
	{Scenario: "account", Subject: "ledgerd", Unit: "p99-ms", Of: "other", AtMost: 1, Why: "a reason | with a bar", Needs: "a third processor"},
	{Scenario: "account", Subject: "other", Unit: "req/s", Of: "ledgerd", AtLeast: 1, Why: "for a change"},
	{Scenario: "lag", Subject: "replicas=3", Unit: "p50-ms", Of: "replicas=1", AtMost: 0.5, Why: "half of it", Needs: "nothing"},
	{Scenario: "lag", Subject: "replicas=1", Unit: "p99-ms", Of: "replicas=3", AtMost: 1, Why: "it is late"},
	{Scenario: "lag", Subject: "replicas=3", Unit: "p50-ms", Of: "no-errors", AtMost: 1, Why: "there is no quotient by nothing"},
}

// The interval of fewer values than tell one is all of their range, which judges more strictly.
func TestIntervals(t *testing.T) {
	for _, tt := range []struct {
		values         []float64
		median, lo, hi float64
	}{
		{[]float64{7}, 7, 7, 7},
		{[]float64{3, 1, 2}, 2, 1, 3},
		{[]float64{1, 2, 3, 4, 5, 6}, 3.5, 1, 6},
		{[]float64{9, 1, 2, 3, 4, 5, 6, 7, 8, 100}, 5.5, 2, 9},
	} {
		if median, lo, hi := interval(tt.values); median != tt.median || lo != tt.lo || hi != tt.hi {
			t.Errorf("%v: %v (%v–%v), want %v (%v–%v)", tt.values, median, lo, hi, tt.median, tt.lo, tt.hi)
		}
	}
}

func TestPage(t *testing.T) {
	var got bytes.Buffer
	must(t, measured(t).WritePage(&got, goals, []Section{{"account", "How many."}, {"lag", "How late."}, {"absent", "Nothing."}}))
	ledgertest.Golden(t, "testdata/page.md", got.String(), *update)
}

func TestRecordsThatAreRefused(t *testing.T) {
	const one = "commit: a\nchanges: no\n\nBenchmarkAccount/subject=x 1 5 req/s\n"
	for name, tt := range map[string]struct{ text, want string }{
		"two revisions":  {one + "commit: b\n\nBenchmarkAccount/subject=y 1 5 req/s\n", "commit"},
		"with changes":   {strings.Replace(one, "changes: no", "changes: yes", 1), "with changes"},
		"unknown":        {strings.Replace(one, "commit: a\n", "", 1), "does not say"},
		"no subject":     {one + "BenchmarkAccount 1 5 req/s\n", "no subject"},
		"a broken line":  {one + "BenchmarkAccount/subject=x 1 five req/s\n", "syntax"},
		"nothing at all": {"", "does not say"},
	} {
		f, err := Read([]byte(tt.text), name)
		if err == nil {
			err = f.CheckClean()
		}
		ledgertest.ErrorSays(t, err, tt.want, "%s", name)
	}
	f, err := Read([]byte(one), "one")
	if err != nil || f.CheckClean() != nil {
		t.Errorf("err = %v", err)
	}
}
