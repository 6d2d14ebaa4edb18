package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ledgerd/bench"
)

// said is what a run of the command wrote.
type said struct{ out, err strings.Builder }

func (s *said) streams() *streams {
	return &streams{strings.NewReader(""), &s.out, &s.err, "ledgerbench as it was typed"}
}

// ledgerd is a program that is there; no scenario here starts it.
func ledgerd(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// scenarios are one that is well and misses a goal, and one that fails.
func scenarios(seen *[]bench.Env) []bench.Scenario {
	return []bench.Scenario{
		{Name: "broken", Help: "Fails.", Run: func(_ context.Context, env *bench.Env) (*bench.Result, error) {
			return nil, errors.New("the cable is out")
		}},
		{Name: "slow", Help: "Is slow.", Run: func(_ context.Context, env *bench.Env) (*bench.Result, error) {
			*seen = append(*seen, *env)
			r := &bench.Result{Scenario: "slow", Goals: []bench.Goal{{What: "speed", Value: 1, Limit: 2, Least: true}}}
			r.Row("ledgerd").Add("speed", "m/s", 1)
			return r, os.WriteFile(filepath.Join(env.Dir, "left"), nil, 0o600)
		}},
	}
}

func TestAFailedScenarioDoesNotKeepOthersFromTheReport(t *testing.T) {
	var s said
	var seen []bench.Env
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "report.json")
	flags := loadFlags{Rounds: 2, Duration: 1, Scale: 0.5, Peers: true, Ledgerd: ledgerd(t), Dir: dir, JSON: file}
	err := flags.run(t.Context(), s.streams(), scenarios(&seen))
	if err == nil || !strings.Contains(err.Error(), "cannot run broken: the cable is out") {
		t.Errorf("err = %v", err)
	}
	if len(seen) != 1 || seen[0].Rounds != 2 || seen[0].Scale != 0.5 || !seen[0].Peers || seen[0].Ledgerd != ledgerd(t) {
		t.Errorf("the scenario ran in %+v", seen)
	}
	if text := s.out.String(); !strings.Contains(text, "machine  ") || !strings.Contains(text, "MISSED  speed") {
		t.Errorf("report:\n%s", text)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var report bench.Report
	if err := json.Unmarshal(b, &report); err != nil || len(report.Results) != 1 || report.Machine.Cores < 1 {
		t.Errorf("JSON report: %v\n%s", err, b)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestMissedGoalsFailOnlyWhenChecked(t *testing.T) {
	for _, check := range []bool{false, true} {
		var s said
		flags := loadFlags{Scenario: []string{"slow"}, Rounds: 1, Duration: 1, Scale: 1, Check: check, Ledgerd: ledgerd(t), Dir: t.TempDir()}
		if err := flags.run(t.Context(), s.streams(), scenarios(new([]bench.Env))); (err != nil) != check {
			t.Errorf("check %v: err = %v", check, err)
		}
	}
}

func TestAnInterruptedRunStopsAndStillReports(t *testing.T) {
	var s said
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var seen []bench.Env
	flags := loadFlags{Rounds: 1, Duration: 1, Scale: 1, Ledgerd: ledgerd(t), Dir: t.TempDir()}
	if err := flags.run(ctx, s.streams(), scenarios(&seen)); err == nil {
		t.Error("no error")
	}
	if len(seen) > 0 || !strings.Contains(s.out.String(), "machine  ") {
		t.Errorf("%d scenarios ran on; report:\n%s", len(seen), s.out.String())
	}
}

func TestBadFlagsExitWithTwo(t *testing.T) {
	for name, args := range map[string][]string{
		"no command":          {},
		"unknown command":     {"tea"},
		"unknown scenario":    {"ws", "--scenario", "nope"},
		"no ledgerd":          {"ws", "--ledgerd", filepath.Join(t.TempDir(), "ledgerd")},
		"no rounds":           {"ws", "--rounds", "0", "--ledgerd", ledgerd(t)},
		"negative duration":   {"ws", "--duration", "-1s", "--ledgerd", ledgerd(t)},
		"directory is absent": {"ws", "--dir", filepath.Join(t.TempDir(), "absent"), "--ledgerd", ledgerd(t)},
	} {
		var s said
		if code := run(t.Context(), args, s.streams()); code != exitUsage || s.err.Len() == 0 {
			t.Errorf("%s: exit code %d, said %q, want %d and why", name, code, s.err.String(), exitUsage)
		}
	}
}

func TestHelpNamesEveryScenario(t *testing.T) {
	var s said
	if code := run(t.Context(), []string{"ws", "--help"}, s.streams()); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	for _, scenario := range bench.WebSocket() {
		if !strings.Contains(s.out.String(), scenario.Name+": ") {
			t.Errorf("help does not name %s:\n%s", scenario.Name, s.out.String())
		}
	}
	if strings.Contains(s.out.String(), "peer ") {
		t.Errorf("help shows what is hidden:\n%s", s.out.String())
	}
}
