package bench

import (
	"testing"
	"time"
)

// The server gives a reader that stalls five seconds, so this takes that long.
func TestStalledReaderIsGoneAndTheOthersHearEverything(t *testing.T) {
	t.Parallel()
	s := &stalledRun{
		env: &Env{
			Ledgerd: program(t, "ledgerd"), Dir: t.TempDir(), Rounds: 1, Duration: 200 * time.Millisecond,
			Scale: 0.004, Progress: t.Output(),
		},
		result: &Result{Scenario: "stalled"}, pairs: 1,
	}
	r, err := s.run(t.Context(), 40*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"nobody stalls", "one stalls"} { // four subscribers and the probe
		if r.median(subject, "p99") <= 0 || r.median(subject, "connections afterwards") != 5 {
			t.Errorf("%s: %+v", subject, r.Row(subject))
		}
	}
	if r.median("the stalled one", "gone after that") <= 0 {
		t.Errorf("the stalled one: %+v", r.Row("the stalled one"))
	}
}
