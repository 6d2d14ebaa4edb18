package bench

import (
	"testing"
	"time"
)

// Every answer is true at the slot that it names, while accounts change under the questions.
func TestMixedAsksWhileBlocksComeIn(t *testing.T) {
	t.Parallel()
	result := runREST(t, "mixed", RESTOptions{Rate: 2000}, Env{Rounds: 1, Duration: 2 * time.Second, Scale: 0.01})
	if len(result.Rows) != 4 || len(result.Goals) != 3 {
		t.Errorf("%d rows, goals %+v", len(result.Rows), result.Goals)
	}
	snapshots := 0.0
	for _, row := range result.Rows {
		updates := row.figure("updates")
		if len(updates.Values) > 0 && (updates.Median() <= 0 || row.figure("published p99").Median() <= 0) {
			t.Errorf("%s: nothing was published: %+v", row.Subject, row.Figures)
		}
		snapshots += row.figure("time in which a snapshot is taken").Median()
	}
	if snapshots <= 0 {
		t.Error("no snapshot was taken")
	}
}
