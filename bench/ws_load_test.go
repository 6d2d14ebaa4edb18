package bench

import (
	"testing"
	"time"
)

// run runs a scenario at a small scale. It checks by itself that everybody is told what is
// true; how fast that went is not looked at.
func run(t *testing.T, s Scenario, e Env) *Result {
	t.Helper()
	if e.Ledgerd == "" {
		e.Ledgerd = program(t, "ledgerd")
	}
	e.Dir, e.Progress = t.TempDir(), t.Output()
	result, err := s.Run(t.Context(), &e)
	if err != nil {
		t.Fatal(err)
	}
	if result.Scenario != s.Name || len(result.Goals) == 0 {
		t.Errorf("the result is of %q and has %d goals", result.Scenario, len(result.Goals))
	}
	for _, row := range result.Rows {
		for _, f := range row.Figures {
			if len(f.Values) != e.Rounds {
				t.Errorf("%s: %s has %d values after %d rounds", row.Subject, f.Name, len(f.Values), e.Rounds)
			}
		}
	}
	return result
}

func TestLatencyTellsEverybodyEverything(t *testing.T) {
	t.Parallel()
	result := run(t, latency, Env{Rounds: 1, Duration: 800 * time.Millisecond, Scale: 0.03})
	if got := len(result.Rows); got != 2 {
		t.Errorf("%d rows", got)
	}
	for _, row := range result.Rows {
		if row.figure("frames").Median() <= 0 || row.figure("p99").Median() <= 0 || row.figure("max").Median() < row.figure("p50").Median() {
			t.Errorf("figures: %+v", row)
		}
	}
}

func TestIdleTellsNobodyAnything(t *testing.T) {
	t.Parallel()
	result := run(t, idle, Env{Rounds: 1, Duration: 200 * time.Millisecond, Scale: 0.005})
	if row := result.Row("connected"); row.figure("memory").Median() <= 0 || row.figure("open files").Median() < 75 {
		t.Errorf("figures: %+v", row)
	}
}

func TestFilteredTellsEverybodyTheirAccounts(t *testing.T) {
	t.Parallel()
	result := run(t, filtered, Env{Rounds: 2, Duration: 800 * time.Millisecond, Scale: 0.01})
	if row := result.Row("100 subscribers"); row.figure("frames").Median() <= 0 || row.figure("flat out").Median() <= 0 {
		t.Errorf("figures: %+v", row)
	}
	if row := result.Row("nobody"); row.figure("flat out").Median() <= 0 || row.figure("received p99").Median() != 0 {
		t.Errorf("figures: %+v", row)
	}
}
