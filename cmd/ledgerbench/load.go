package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"ledgerd/bench"
)

// loadFlags are those of every command that loads a server.
type loadFlags struct {
	Scenario []string      `help:"Run this one alone; may be repeated. Default: all." placeholder:"NAME"`
	Rounds   int           `help:"How often everything is measured." default:"3"`
	Duration time.Duration `help:"Of one measurement." default:"10s"`
	Scale    float64       `help:"Share of the full load. The goals are for 1." default:"1"`
	Peers    bool          `help:"Also measure other services, in turns."`
	JSON     string        `name:"json" help:"Also write the report here, with the values of every round." placeholder:"FILE" type:"path"`
	HTML     string        `name:"html" help:"Also write the report here as one page, with plots." placeholder:"FILE" type:"path"`
	SVG      string        `name:"svg" help:"Also write the plots here, each as a file of its own." placeholder:"DIR" type:"path"`
	Markdown string        `help:"Also keep the results beside this page and write it anew: bench/RESULTS.md. What was kept of other scenarios stays." placeholder:"FILE" type:"path"`
	Ledgerd  string        `help:"The program to load. Default: the one beside this program." placeholder:"PATH" type:"path"`
	URL      string        `name:"url" help:"Load the server that runs there instead of one that is started: http://HOST:PORT. Scenarios that need one of their own are left out." placeholder:"URL"`
	OpsURL   string        `name:"ops-url" help:"Its operators' listener, which tells what it takes of its processors: http://HOST:PORT." placeholder:"URL"`
	Pid      int           `help:"Its process, if it is on this machine: the kernel tells the same more exactly."`
	Dir      string        `help:"Where data directories are made, on the disk that is to be used. Default: where the system keeps temporary files." placeholder:"DIR" type:"existingdir"`
	Check    bool          `help:"Fail if a goal is missed."`
}

// wsCommand loads the WebSocket stream.
type wsCommand struct {
	loadFlags `embed:""`
}

// Help lists the scenarios.
func (c *wsCommand) Help() string { return list(bench.WebSocket()) }

func (c *wsCommand) Run(ctx context.Context, streams *streams) error {
	return c.run(ctx, streams, bench.WebSocket())
}

func list(scenarios []bench.Scenario) string {
	var b strings.Builder
	b.WriteString("Scenarios:")
	for _, s := range scenarios {
		fmt.Fprintf(&b, "\n\n%s: %s", s.Name, s.Help)
	}
	return b.String()
}

// chosen returns the scenarios that were named, in their own order.
func (f *loadFlags) chosen(all []bench.Scenario) ([]bench.Scenario, error) {
	if len(f.Scenario) == 0 {
		return all, nil
	}
	named := map[string]bool{}
	for _, name := range f.Scenario {
		named[name] = true
	}
	var chosen []bench.Scenario
	var known []string
	for _, s := range all {
		if named[s.Name] {
			chosen = append(chosen, s)
		}
		known = append(known, s.Name)
		delete(named, s.Name)
	}
	for name := range named {
		return nil, &usageError{fmt.Errorf("there is no scenario %q, only %s", name, strings.Join(known, ", "))}
	}
	return chosen, nil
}

// env returns what the scenarios run in; clean is called after the last.
func (f *loadFlags) env(ctx context.Context, progress io.Writer) (env *bench.Env, clean func() error, err error) {
	if f.Rounds < 1 || f.Duration <= 0 || f.Scale <= 0 {
		return nil, nil, &usageError{errors.New("--rounds, --duration and --scale must be above 0")}
	}
	program, live := "", (*bench.Live)(nil)
	if f.URL != "" {
		live, err = f.live(ctx)
	} else {
		program, err = f.program()
	}
	if err != nil {
		return nil, nil, &usageError{err}
	}
	dir, err := os.MkdirTemp(f.Dir, "ledgerbench-")
	if err != nil {
		return nil, nil, err
	}
	return &bench.Env{
		Ledgerd: program, Live: live, Dir: dir,
		Rounds: f.Rounds, Duration: f.Duration, Scale: f.Scale, Peers: f.Peers,
		Progress: progress,
	}, func() error { return os.RemoveAll(dir) }, nil
}

// program returns the ledgerd to start.
func (f *loadFlags) program() (string, error) {
	if f.OpsURL != "" || f.Pid != 0 {
		return "", errors.New("--ops-url and --pid are of a server that runs: they need --url")
	}
	program := f.Ledgerd
	if program == "" {
		self, err := os.Executable()
		if err != nil {
			return "", err
		}
		program = filepath.Join(filepath.Dir(self), "ledgerd")
	}
	program, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("there is no ledgerd to load (see --ledgerd): %w", err)
	}
	return program, nil
}

// live returns the server that runs already.
func (f *loadFlags) live(ctx context.Context) (*bench.Live, error) {
	live, err := bench.NewLive(ctx, bench.LiveConfig{URL: f.URL, OpsURL: f.OpsURL, Pid: f.Pid})
	if err == nil && f.Peers && !live.Here() {
		err = errors.New("--peers run on this machine: what they do says nothing of a server elsewhere")
	}
	return live, err
}

// allNeedTheirOwn is an error if none of the scenarios can be run against a server that runs
// already.
func allNeedTheirOwn(scenarios []bench.Scenario) error {
	var why []string
	for _, s := range scenarios {
		if s.Own == "" {
			return nil
		}
		why = append(why, fmt.Sprintf("%s needs a server that it starts itself: %s", s.Name, s.Own))
	}
	return &usageError{fmt.Errorf("there is nothing to run against --url: %s", strings.Join(why, "; "))}
}

// run runs the scenarios and reports. One that fails does not keep the others from running,
// and is an error in the end.
func (f *loadFlags) run(ctx context.Context, streams *streams, all []bench.Scenario) (err error) {
	scenarios, err := f.chosen(all)
	if err != nil {
		return err
	}
	if f.URL != "" {
		if err := allNeedTheirOwn(scenarios); err != nil {
			return err
		}
	}
	steps := newProgress(streams.err)
	defer steps.end()
	env, clean, err := f.env(ctx, steps)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clean()) }()
	report := bench.NewReport(env, bench.ThisMachine(), time.Now())
	report.Command, report.Loaded = streams.command, bench.Revision(env.Ledgerd)
	if env.Live != nil {
		report.Loaded = env.Live.String()
	}
	keep, err := f.keeper(report)
	if err != nil {
		return err
	}
	var failed []error
	for i, s := range scenarios {
		steps.begin(fmt.Sprintf("%d of %d: %s", i+1, len(scenarios), s.Name))
		env.Say("%d of %d, %s: %s", i+1, len(scenarios), s.Name, s.Help)
		result, err := s.Do(ctx, env)
		if result != nil {
			report.Results = append(report.Results, result)
		}
		if err == nil {
			err = keep(result)
		}
		if err != nil {
			env.Say("%s failed: %v", s.Name, err)
			failed = append(failed, fmt.Errorf("cannot run %s: %w", s.Name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	if err := f.write(streams, report); err != nil {
		failed = append(failed, err)
	}
	if missed := report.Missed(); f.Check && len(missed) > 0 {
		failed = append(failed, fmt.Errorf("goals missed: %d", len(missed)))
	}
	return errors.Join(failed...)
}

// keeper returns what keeps the result of each scenario as soon as there is one, so that a run that
// is interrupted has kept what it had found.
func (f *loadFlags) keeper(report *bench.Report) (keep func(*bench.Result) error, err error) {
	if f.Markdown == "" {
		return func(*bench.Result) error { return nil }, nil
	}
	results, err := bench.OpenResults(f.Markdown)
	if err != nil {
		return nil, err
	}
	return func(r *bench.Result) error {
		if len(r.Rows) == 0 {
			return nil // it was left out
		}
		return errors.Join(results.Keep(report, r), results.WritePage(order()))
	}, nil
}

// write writes the report for people, and in every other form that was asked for.
func (f *loadFlags) write(streams *streams, report *bench.Report) error {
	failed := []error{report.WriteText(streams.out), writeFile(f.JSON, report.WriteJSON), writeFile(f.HTML, report.WriteHTML)}
	if f.SVG != "" {
		failed = append(failed, report.WriteSVG(f.SVG))
	}
	return errors.Join(failed...)
}

// writeFile writes a form of the report to a file, unless that has no name.
func writeFile(path string, write func(w io.Writer) error) (err error) {
	if path == "" {
		return nil
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return write(file)
}
