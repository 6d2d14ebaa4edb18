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
	"ledgerd/bench/proc"
	"ledgerd/bench/report"
)

// Scenario is one kind of load.
type Scenario struct {
	Name string // as it is typed: one word in lower case
	Help string // one line
	Run  func(ctx context.Context, r *Run) error
}

// Scenarios are all there are, in the order in which they are run and reported.
var Scenarios = slices.Concat(restScenarios, rpcScenarios, streamScenarios, dataScenarios, historyScenarios, clusterScenarios)

// Goals are what is asked of ledgerd, in the order in which they are reported. They stand in the file of their kind of scenario.
var Goals = slices.Concat(restGoals, rpcGoals, streamGoals, dataGoals, historyGoals, clusterGoals)

// Run is what scenarios run in, and where they record what they measure. It ends what they start.
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

	scenario string                    // that runs
	ends     []func(failed bool) error // of what was started, in that order
}

// Do runs a scenario. One that needs a program which is absent is left out with a note.
func (r *Run) Do(ctx context.Context, s *Scenario) error {
	r.scenario = s.Name
	err := r.end(0, s.Run(ctx, r))
	if absent := (*peer.AbsentError)(nil); errors.As(err, &absent) {
		r.Note("left out: %v", absent)
		err = nil
	}
	return errors.Join(err, r.Out.Err())
}

// Record records a round of a subject: how many requests or updates the figures are of, and the figures.
func (r *Run) Record(subject string, n int, figures ...report.Figure) {
	r.Say("%s, %s: %s", r.scenario, subject, report.Text(figures))
	r.Out.Record(r.scenario, subject, n, figures)
}

// Note tells readers of the scenario's table what they must know of it: an advantage that somebody has, a peer that is
// absent.
func (r *Run) Note(format string, args ...any) { r.Out.Note(r.scenario, fmt.Sprintf(format, args...)) }

// Say writes a line of progress.
func (r *Run) Say(format string, args ...any) { fmt.Fprintf(r.Progress, format+"\n", args...) }

// Scaled returns a size of the full load as this run has it, at least 1.
func (r *Run) Scaled(full int) int { return max(1, int(float64(full)*r.Scale)) }

// atEnd has something ended with the measurement in which it was started (see turns), or else with the scenario: cleanly, or as fast
// as possible where that failed.
func (r *Run) atEnd(end func(failed bool) error) { r.ends = append(r.ends, end) }

// end ends what was started, but for the first so many, the last first. It returns err with what goes wrong meanwhile.
func (r *Run) end(first int, err error) error {
	for _, end := range slices.Backward(r.ends[first:]) {
		err = errors.Join(err, end(err != nil))
	}
	r.ends = r.ends[:first]
	return err
}

// tempDir makes a directory for files.
func (r *Run) tempDir() (string, error) {
	dir, err := os.MkdirTemp(r.Dir, r.scenario+"-")
	r.atEnd(func(bool) error { return os.RemoveAll(dir) })
	return dir, err
}

// start starts a ledgerd on a data directory; "": on one that goes with it. It has a block synced before anybody sees it, and takes
// no snapshot in the middle of a measurement, unless the flags say otherwise.
func (r *Run) start(ctx context.Context, dataDir string, flags ...string) (*proc.Server, error) {
	flags = append([]string{"--wal-sync", "always", "--snapshot-interval", "0"}, flags...)
	s, err := proc.Start(ctx, r.Ledgerd, flags, proc.Options{Dir: r.Dir, DataDir: dataDir})
	if err != nil {
		return nil, err
	}
	r.atEnd(func(failed bool) error {
		if failed {
			s.Kill()
		}
		return s.Stop()
	})
	return s, nil
}

// turns has each of some subjects measured in every round. They change places from round to round, so that none always
// follows the same other.
func turns[S any](r *Run, subjects []S, measure func(S) error) error {
	before := len(r.ends)
	for round := range r.Rounds {
		for i := range subjects {
			if err := r.end(before, measure(subjects[(i+round)%len(subjects)])); err != nil {
				return err
			}
		}
	}
	return nil
}

// inTurns is turns of what measures itself.
func inTurns(r *Run, subjects ...func() error) error {
	return turns(r, subjects, func(measure func() error) error { return measure() })
}
