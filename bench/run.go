package bench

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"ledgerd/bench/proc"
	"ledgerd/bench/report"
)

// Scenario is one kind of load.
type Scenario struct {
	Name string // as it is typed: one word in lower case
	Help string // one line
	run  func(ctx context.Context, r *Run)
}

// Scenarios are all there are, in the order in which they are run and reported.
var Scenarios = []Scenario{
	{"account", "How many requests for accounts are answered in a second, and what one costs.", runAccount},
	{"paced", "How long responses take at 4,000 requests a second, each due at a time of its own.", runPaced},
	{"mixed", "How long responses take at that rate while blocks come in and snapshots are taken.", runMixed},
	{"rpc", "How many accounts with data JSON-RPC answers in a second, one by one and a hundred at a time, and what a call costs.", runRPC},
	{"firehose", "How many bytes and frames 500 subscribers of everything are handed in a second.", runFirehose},
	{"filtered", "How much 10,000 subscribers of 10 accounts each slow ingest down, at 75,000 updates a second and flat out, and what memory each takes.", runFiltered},
	{"storm", "What REST notices of 2,000 clients that send a byte a second, and of 15,000 that connect at once.", runStorm},
	{"ingest", "How many account updates a second are durable and published, read from an event file.", runIngest},
	{"memory", "How much memory an account takes with all indexes, and how long a start takes until the first right answer.", runMemory},
	{"history", "How long a transaction of a week ago takes from disk, and what readers of accounts notice of 64 clients that ask for such.", runHistory},
	{"cluster", "What it costs that updates pass a log on three nats-servers, each of which syncs every message: updates a second, and how late a block is shown.", runCluster},
}

//go:embed goals.yaml
var goals []byte

// Goals are what is asked of ledgerd, in the order in which they are reported.
var Goals = got(report.ReadGoals(goals))

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

	scenario string         // that runs
	ends     []func() error // of what was started, in that order
}

// Do runs a scenario. One that needs a program which is absent is left out with a note.
func (r *Run) Do(ctx context.Context, s *Scenario) error {
	r.scenario = s.Name
	err := r.end(0, try(func() { s.run(ctx, r) }))
	if absent, ok := errors.AsType[*proc.AbsentError](err); ok {
		r.Note("left out: %v", absent)
		err = nil
	}
	return errors.Join(err, r.Out.Err())
}

// failure is why a scenario ends before its last step.
type failure struct{ error }

// check ends the scenario, or what try does of it, where a step has failed. So a scenario reads as a test does: as its steps, each of which
// is taken if all before it succeeded. Only scenarios use it: no other package sees the panic, and what has an answer to an error returns it.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// got is check of a step that returns something.
func got[T any](value T, err error) T {
	check(err)
	return value
}

// try takes steps, and returns why they ended early, if they did.
func try(steps func()) (err error) {
	defer func() {
		switch caught := recover().(type) {
		case nil:
		case failure:
			err = caught.error
		default:
			panic(caught)
		}
	}()
	steps()
	return nil
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

// atEnd has something ended with the measurement in which it was started (see turns), or else with the scenario.
func (r *Run) atEnd(end func() error) { r.ends = append(r.ends, end) }

// end ends what was started, but for the first so many, the last first. It returns err with what goes wrong meanwhile.
func (r *Run) end(first int, err error) error {
	for _, end := range slices.Backward(r.ends[first:]) {
		err = errors.Join(err, end())
	}
	r.ends = r.ends[:first]
	return err
}

// tempDir makes a directory for files.
func (r *Run) tempDir() string {
	dir := got(os.MkdirTemp(r.Dir, r.scenario+"-"))
	r.atEnd(func() error { return os.RemoveAll(dir) })
	return dir
}

// start starts a ledgerd on a data directory; "": on one that goes with it. It has a block synced before anybody sees it, and takes
// no snapshot in the middle of a measurement, unless the flags say otherwise.
func (r *Run) start(ctx context.Context, dataDir string, flags ...string) *proc.Server {
	flags = append([]string{"--wal-sync", "always", "--snapshot-interval", "0"}, flags...)
	s := got(proc.Start(ctx, r.Ledgerd, flags, proc.Options{Dir: r.Dir, DataDir: dataDir}))
	r.atEnd(s.Stop)
	return s
}

// turns has each of some subjects measured in every round. They change places from round to round, so that none always
// follows the same other.
func turns[S any](r *Run, subjects []S, measure func(S)) {
	before := len(r.ends)
	for round := range r.Rounds {
		for i := range subjects {
			check(r.end(before, try(func() { measure(subjects[(i+round)%len(subjects)]) })))
		}
	}
}

// inTurns is turns of what measures itself.
func inTurns(r *Run, subjects ...func()) { turns(r, subjects, func(measure func()) { measure() }) }
