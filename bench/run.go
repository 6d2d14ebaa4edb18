package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"ledgerd/bench/peer"
	"ledgerd/bench/report"
)

// Scenario is one kind of load.
type Scenario struct {
	Name string // as it is typed: lower case, words joined by hyphens
	Help string // one line
	Run  func(ctx context.Context, r *Run) error
}

// Scenarios are all there are, in the order in which they are run and reported.
var Scenarios = slices.Concat(restScenarios, streamScenarios, dataScenarios, clusterScenarios)

// Run is what scenarios run in, and where they record what they measure.
type Run struct {
	Ledgerd  string        // the program to start
	Self     []string      // the command that peer.Serve runs in, when a peer's name is added
	Dir      string        // for data directories; a scenario removes what it puts there
	Rounds   int           // how often everything is measured
	Duration time.Duration // of one measurement
	Scale    float64       // 1: the sizes that the goals name; less for a trial
	Peers    bool          // also measure what a user would pick instead
	Out      *report.Writer
	Progress io.Writer // one line a step, for people

	scenario string // that runs
}

// Do runs a scenario. One that needs a program which is absent is left out with a note.
func (r *Run) Do(ctx context.Context, s *Scenario) error {
	r.scenario = s.Name
	err := s.Run(ctx, r)
	if absent := (*peer.AbsentError)(nil); errors.As(err, &absent) {
		return r.Note("left out: %v", absent)
	}
	return err
}

// Record records a round of a subject: how many requests or updates the figures are of, and the figures.
func (r *Run) Record(subject string, n int, figures ...report.Figure) error {
	r.Say("%s, %s: %s", r.scenario, subject, report.Text(figures))
	return r.Out.Record(r.scenario, subject, n, figures)
}

// Note tells readers of the scenario's table what they must know of it: an advantage that somebody has, a peer that is
// absent.
func (r *Run) Note(format string, args ...any) error {
	return r.Out.Note(r.scenario, fmt.Sprintf(format, args...))
}

// Say writes a line of progress.
func (r *Run) Say(format string, args ...any) { fmt.Fprintf(r.Progress, format+"\n", args...) }

// Scaled returns a size of the full load as this run has it, at least 1.
func (r *Run) Scaled(full int) int { return max(1, int(float64(full)*r.Scale)) }

// TempDir makes a directory for a scenario's files, and returns what removes it.
func (r *Run) TempDir() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp(r.Dir, r.scenario+"-")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// turns has each of some subjects measured in every round. They change places from round to round, so that none always
// follows the same other.
func turns[S any](r *Run, subjects []S, measure func(S) error) error {
	for round := range r.Rounds {
		for i := range subjects {
			if err := measure(subjects[(i+round)%len(subjects)]); err != nil {
				return err
			}
		}
	}
	return nil
}
