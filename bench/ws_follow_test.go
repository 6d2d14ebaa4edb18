package bench

import (
	"strings"
	"testing"
	"time"
)

func TestFollowersMissNothing(t *testing.T) {
	t.Parallel()
	result := run(t, following, Env{Rounds: 2, Duration: 1200 * time.Millisecond, Scale: 0.05})
	row := result.Row("ledgerd")
	for _, name := range []string{"frames", "updates", "blocks", "ping p99", "CPU of the server"} {
		if f := row.figure(name); f.Median() <= 0 {
			t.Errorf("%s: %v", name, f.Values)
		}
	}
	if got := row.figure("subscribers").Median(); got != 5 || !result.Goals[0].Met() {
		t.Errorf("%v subscribers, goals %+v, notes %q", got, result.Goals, result.Notes)
	}
}

func TestOthersHearABlockBehindTheFirst(t *testing.T) {
	a := arrivals{first: make(map[blockEnd]time.Time), spent: NewHistogram()}
	now := time.Now()
	a.hear(blockEnd{1, 10}, now)
	a.hear(blockEnd{1, 12}, now.Add(time.Second)) // the slot again, after a fork
	a.hear(blockEnd{1, 10}, now.Add(3*time.Millisecond))
	if a.spent.Count() != 1 || a.spent.Quantile(1).Round(time.Millisecond) != 3*time.Millisecond {
		t.Errorf("%d counted, the longest %v", a.spent.Count(), a.spent.Quantile(1))
	}
	for i := range uint64(2 * mostEnds) {
		a.hear(blockEnd{i, i}, now)
	}
	if len(a.first) > mostEnds {
		t.Errorf("%d blocks are remembered", len(a.first))
	}
}

// What was wrong first is what is told; how often is counted.
func TestFollowersAreToldApart(t *testing.T) {
	var f followers
	for _, wrong := range []string{"a", "b"} {
		f.wrong(&time.ParseError{Message: wrong})
	}
	if err := f.check(); f.faults != 2 || err == nil || !strings.Contains(err.Error(), "a") {
		t.Errorf("%d faults: %v", f.faults, err)
	}
}
