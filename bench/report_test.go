package bench

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func sampleReport() *Report {
	env := &Env{Rounds: 3, Duration: 10 * time.Second, Scale: 0.5}
	m := Machine{CPU: "An Example at 2 GHz", Cores: 2, MemoryBytes: 24 << 30, Kernel: "6.1.0", Go: "go1.26.0"}
	report := NewReport(env, m, time.Date(2026, 11, 21, 19, 4, 5, 6, time.FixedZone("", 3600)))
	report.Command, report.Loaded = "ledgerbench ws --peers", "ledgerd of commit 0123456789ab"
	first := &Result{Scenario: "firehose", Notes: []string{"nats was left out: there is no nats-server"}}
	for _, v := range []float64{25.25, 24, 26.125} {
		first.Row("ledgerd").Add("frames", "M/s", v)
		first.Row("raw").Add("bytes", "MB/s", 100*v)
		first.Row("ledgerd").Add("bytes", "MB/s", 145*v)
		first.Row("ledgerd").Add("share of raw’s", "×", v/27)
	}
	first.Goals = []Goal{
		{What: "frames delivered a second, millions", Value: 25.25, Limit: 20, Least: true},
		{What: "CPU", Value: 0.0123, Limit: 0.01},
	}
	report.Results = append(report.Results, first, &Result{Scenario: "idle", Rows: []Row{{Subject: "ledgerd"}}})
	return report
}

// sampleParts are reports of a scenario each, of two runs.
func sampleParts() []*Report {
	var parts []*Report
	whole, later := plottedReport(), sampleReport()
	whole.Results[0].Versions = map[string]string{"nginx": "nginx/1.22.1", "a_peer": "1|2"}
	whole.Results[0].About = "How many <frames> a_b*c are handed | out."
	later.Begun = later.Begun.Add(time.Hour)
	later.Command = "ledgerbench ws --scenario idle --json a|b"
	for _, report := range []*Report{later, whole} {
		for _, result := range report.Results {
			part := *report
			part.Results = []*Result{result}
			parts = append(parts, &part)
		}
	}
	return parts
}

func TestReportsReadAsTheyDid(t *testing.T) {
	for name, write := range map[string]func(*Report, *strings.Builder) error{
		"report.txt":  func(r *Report, b *strings.Builder) error { return r.WriteText(b) },
		"report.json": func(r *Report, b *strings.Builder) error { return r.WriteJSON(b) },
		"RESULTS.md":  func(_ *Report, b *strings.Builder) error { return writeMarkdown(b, sampleParts()[1:], "results") },
	} {
		var got strings.Builder
		if err := write(sampleReport(), &got); err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got.String(), want)
		}
	}
}

func TestMissedGoalsAreThoseOnTheWrongSide(t *testing.T) {
	missed := sampleReport().Missed()
	if len(missed) != 1 || missed[0].What != "CPU" {
		t.Errorf("missed goals: %+v, want CPU alone", missed)
	}
}

func TestNumbersHaveThreeDigitsOrMore(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 500: "500", 7: "7", 0.01234: "0.012", 0.123: "0.12", 9.876: "9.88", 25.25: "25.2", 250.4: "250",
		1000: "1,000", 1234567.8: "1,234,568", -123456: "-123,456", -1234567: "-1,234,567",
	} {
		if got := numbers(v)[0]; got != want {
			t.Errorf("%v is written %q, want %q", v, got, want)
		}
	}
	if got := strings.Join(numbers(24, 0, 24.5), " "); got != "24.0 0 24.5" {
		t.Errorf("24, 0 and 24.5 are written %q", got)
	}
}

func TestThisMachineHasCoresAndGo(t *testing.T) {
	m := ThisMachine()
	if m.Cores < 1 || !strings.HasPrefix(m.Go, "go") {
		t.Errorf("this machine is %+v", m)
	}
	const cpuinfo = "processor\t: 0\nmodel name\t: One: Two\nprocessor\t: 1\nmodel name\t: Three\n"
	if got := field(cpuinfo, "model name"); got != "One: Two" {
		t.Errorf("model name is %q", got)
	}
}
