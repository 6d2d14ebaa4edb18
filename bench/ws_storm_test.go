package bench

import (
	"strings"
	"testing"
	"time"
)

func TestStormLetsEverybodyInAndKeepsTheGreedyOut(t *testing.T) {
	t.Parallel()
	s := &stormRun{
		env: &Env{
			Ledgerd: program(t, "ledgerd"), Dir: t.TempDir(), Rounds: 2, Duration: 500 * time.Millisecond,
			Scale: 0.02, Progress: t.Output(),
		},
		self: []string{program(t, "ledgerbench"), "helper", "storm"}, result: &Result{Scenario: "storm"},
	}
	r, err := s.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	row := r.Row("ledgerd")
	for name, want := range map[string]float64{
		"connected": 300, "not let in": 0, "lost": 0, "above the client's cap, not answered 429": 0,
		"REST not answered 200 before": 0, "REST not answered 200 meanwhile": 0,
	} {
		if f := row.figure(name); len(f.Values) != 2 || f.Values[0] != want || f.Values[1] != want {
			t.Errorf("%s: %v, want %v in both rounds", name, f.Values, want)
		}
	}
	if row.figure("REST p99 meanwhile, of that before").Median() <= 0 {
		t.Errorf("nobody asked over REST: %+v", row)
	}
	for _, g := range r.Goals {
		if g.Limit == 0 && !g.Met() {
			t.Errorf("%s: %v", g.What, g.Value)
		}
	}
	if len(r.Notes) != 2 || !strings.Contains(r.Notes[0], "not filled up") {
		t.Errorf("the notes do not say, once, that the server was not filled up: %q", r.Notes)
	}
}
