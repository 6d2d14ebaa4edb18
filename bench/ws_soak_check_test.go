package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func extendedUpdate(slot, seq int) string {
	return fmt.Sprintf(`{"type":"account_update","pubkey":"4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi","lamports":7,"timestamp":null,`+
		`"slot":%d,"seq":%d,"owner":"11111111111111111111111111111111","executable":false,"commitment":"processed"}`, slot, seq)
}

func TestSequenceNoticesWhatIsMissingOrToldTwice(t *testing.T) {
	const (
		end5      = `{"type":"slot_end","slot":1,"seq":5}`
		resumed5  = `{"type":"resumed","id":null,"from_seq":5}`
		rollback5 = `{"type":"rollback","from_slot":2,"to_slot":1,"seq":5}`
	)
	for name, tt := range map[string]struct {
		last   uint64
		frames []string
		fault  string // "": none
	}{
		"a new one begins anywhere":   {0, []string{extendedUpdate(1, 4), extendedUpdate(1, 5), end5, extendedUpdate(2, 6)}, ""},
		"a heartbeat is where it is":  {0, []string{`{"type":"heartbeat","slot":1,"seq":5,"timestamp":null}`, extendedUpdate(2, 6)}, ""},
		"a resume goes on":            {5, []string{resumed5, end5, extendedUpdate(2, 6)}, ""},
		"an undone fork goes on":      {0, []string{extendedUpdate(1, 5), rollback5, extendedUpdate(1, 6)}, ""},
		"one is missing":              {0, []string{extendedUpdate(1, 4), extendedUpdate(1, 6)}, "after 4 came"},
		"one comes twice":             {0, []string{extendedUpdate(1, 4), extendedUpdate(1, 4)}, "after 4 came"},
		"a resume leaves one out":     {5, []string{resumed5, extendedUpdate(2, 7)}, "after 5 came"},
		"a resume repeats one":        {5, []string{resumed5, extendedUpdate(1, 5)}, "after 5 came"},
		"a resume goes on elsewhere":  {4, []string{resumed5}, "asked to go on after 4"},
		"a block ends too early":      {0, []string{extendedUpdate(1, 4), end5}, "after 4 came"},
		"a rollback comes too early":  {0, []string{extendedUpdate(1, 4), rollback5}, "after 4 came"},
		"there is nothing to resume":  {4, []string{`{"type":"resync_required","id":null,"oldest_seq":5,"newest_seq":9}`}, "resync_required"},
		"an update without its place": {0, []string{`{"type":"account_update","pubkey":"4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi","lamports":7,"timestamp":null}`}, "after 0 came"},
	} {
		s := sequence{last: tt.last}
		var err error
		for _, f := range tt.frames {
			if err = s.take([]byte(f)); err != nil {
				break
			}
		}
		if tt.fault == "" && err != nil || tt.fault != "" && (err == nil || !strings.Contains(err.Error(), tt.fault)) {
			t.Errorf("%s: err = %v, want %q", name, err, tt.fault)
		}
	}
}

func TestAnswersAreHeldAgainstTheNewestStateUpToTheirSlot(t *testing.T) {
	told := []toldState{{5, 50}, {7, 70}, {8, 80}}
	for name, tt := range map[string]struct {
		answer toldState
		agrees bool
	}{
		"at the slot of a state":      {toldState{7, 70}, true},
		"between two states":          {toldState{6, 50}, true},
		"behind the last":             {toldState{9, 80}, true},
		"before the first":            {toldState{4, 1}, true},
		"of an older state":           {toldState{8, 70}, false},
		"of a newer state":            {toldState{6, 70}, false},
		"of a state that never was":   {toldState{7, 71}, false},
		"of an account said to close": {toldState{9, 0}, false},
	} {
		if err := agrees(told, tt.answer); (err == nil) != tt.agrees {
			t.Errorf("%s: agrees(%v, %v) = %v, want agreement: %v", name, told, tt.answer, err, tt.agrees)
		}
	}
}

func TestSlopeIsThatOfALine(t *testing.T) {
	var samples []soakSample
	for i := range 60 {
		samples = append(samples, soakSample{at: time.Duration(i) * time.Minute, standing: standing{rss: 100 + float64(i)/2}})
	}
	if got := slope(samples); got < 29.999 || got > 30.001 {
		t.Errorf("half a MiB a minute is %v MiB/h, want 30", got)
	}
	if got := slope(nil); got != 0 {
		t.Errorf("slope of nothing is %v", got)
	}
}

func TestFaultsOfALoadThatStoodStillAreToldApart(t *testing.T) {
	now := time.Now()
	s := soakRun{watch: stutter{halts: []time.Time{now}}}
	for _, after := range []time.Duration{-time.Minute, -stutterHalt / 2, stutterAfter / 2, time.Minute} {
		s.faults = append(s.faults, soakFault{now.Add(after), after.String()})
	}
	wrong, disturbed, told := s.judge()
	if wrong != 2 || disturbed != 2 || len(told) != 4 || told[0] != "-1m0s" || told[1] != "1m0s" {
		t.Errorf("%d faults, %d disturbed, told %q; want two of each, the server's first", wrong, disturbed, told)
	}
}
