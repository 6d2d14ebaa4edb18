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
	Ledgerd  string        `help:"The program to load. Default: the one beside this program." placeholder:"PATH" type:"path"`
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
func (f *loadFlags) env(streams *streams) (env *bench.Env, clean func() error, err error) {
	if f.Rounds < 1 || f.Duration <= 0 || f.Scale <= 0 {
		return nil, nil, &usageError{errors.New("--rounds, --duration and --scale must be above 0")}
	}
	program := f.Ledgerd
	if program == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, nil, err
		}
		program = filepath.Join(filepath.Dir(self), "ledgerd")
	}
	if program, err = exec.LookPath(program); err != nil {
		return nil, nil, &usageError{fmt.Errorf("there is no ledgerd to load (see --ledgerd): %w", err)}
	}
	dir, err := os.MkdirTemp(f.Dir, "ledgerbench-")
	if err != nil {
		return nil, nil, err
	}
	return &bench.Env{
		Ledgerd: program, Dir: dir,
		Rounds: f.Rounds, Duration: f.Duration, Scale: f.Scale, Peers: f.Peers,
		Progress: streams.err,
	}, func() error { return os.RemoveAll(dir) }, nil
}

// run runs the scenarios and reports. One that fails does not keep the others from running,
// and is an error in the end.
func (f *loadFlags) run(ctx context.Context, streams *streams, all []bench.Scenario) (err error) {
	scenarios, err := f.chosen(all)
	if err != nil {
		return err
	}
	env, clean, err := f.env(streams)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clean()) }()
	report := bench.NewReport(env, bench.ThisMachine(), time.Now())
	var failed []error
	for _, s := range scenarios {
		env.Say("%s: %s", s.Name, s.Help)
		result, err := s.Run(ctx, env)
		if result != nil {
			report.Results = append(report.Results, result)
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
