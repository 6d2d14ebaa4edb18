package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ledgerd/bench"
	"ledgerd/bench/report"
)

// runCommand runs scenarios.
type runCommand struct {
	Scenarios []string      `arg:"" optional:"" name:"scenario" help:"Which. Default: all."`
	Rounds    int           `help:"How often everything is measured." default:"6"`
	Duration  time.Duration `help:"Of one measurement." default:"3s"`
	Scale     float64       `help:"Share of the full load. The goals are for 1." default:"1"`
	Peers     bool          `help:"Also measure other services, in turns."`
	Output    string        `group:"Output:" short:"o" help:"Write the records here instead of to the standard output." placeholder:"FILE" type:"path"`
	Ledgerd   string        `help:"The program to load. Default: the one beside this program." placeholder:"PATH" type:"path"`
	Dir       string        `help:"Where data directories are made, on the disk that is to be used. Default: where the system keeps temporary files." placeholder:"DIR" type:"existingdir"`
	Check     bool          `help:"Fail if a goal of these scenarios is not met."`
}

// Help lists the scenarios.
func (c *runCommand) Help() string {
	var b strings.Builder
	b.WriteString("Records are in Go's benchmark format, for benchstat and for the report command. Scenarios:")
	for _, s := range bench.Scenarios {
		fmt.Fprintf(&b, "\n\n%s: %s", s.Name, s.Help)
	}
	return b.String()
}

// Run runs the scenarios. One that fails does not keep the others from running, and is an error in the end.
func (c *runCommand) Run(ctx context.Context, streams *streams) (err error) {
	scenarios, err := c.chosen()
	if err != nil {
		return err
	}
	r, err := c.prepare(streams)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.Dir)) }()
	out, err := create(streams, cmp.Or(c.Output, stdout))
	if err != nil {
		return &usageError{err}
	}
	defer func() { err = errors.Join(err, out.close()) }()
	var records bytes.Buffer
	r.Out = report.NewWriter(io.MultiWriter(&records, out), r.Config(streams.command, time.Now()))
	var failed []error
	begun := time.Now()
	for i := range scenarios {
		s, left := &scenarios[i], ""
		if i > 0 { // they take about as long as each other
			each := time.Since(begun) / time.Duration(i)
			left = fmt.Sprintf(", about %v left", (each * time.Duration(len(scenarios)-i)).Round(time.Second))
		}
		r.Say("%d of %d%s, %s: %s", i+1, len(scenarios), left, s.Name, s.Help)
		if err := r.Do(ctx, s); err != nil {
			failed = append(failed, fmt.Errorf("cannot run %s: %w", s.Name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errors.Join(failed...), c.judge(streams, records.Bytes()))
}

// chosen returns the scenarios that were named, in their own order.
func (c *runCommand) chosen() ([]bench.Scenario, error) {
	for _, name := range c.Scenarios {
		if !slices.ContainsFunc(bench.Scenarios, func(s bench.Scenario) bool { return s.Name == name }) {
			return nil, &usageError{fmt.Errorf("there is no scenario %q (see ledgerbench run --help)", name)}
		}
	}
	return slices.DeleteFunc(slices.Clone(bench.Scenarios), func(s bench.Scenario) bool {
		return len(c.Scenarios) > 0 && !slices.Contains(c.Scenarios, s.Name)
	}), nil
}

// prepare returns what the scenarios run in. Its directory is the caller's to remove.
func (c *runCommand) prepare(streams *streams) (*bench.Run, error) {
	if c.Rounds < 1 || c.Duration <= 0 || c.Scale <= 0 {
		return nil, &usageError{errors.New("--rounds, --duration and --scale must be above 0")}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	program, err := exec.LookPath(cmp.Or(c.Ledgerd, filepath.Join(filepath.Dir(self), "ledgerd")))
	if err != nil {
		return nil, &usageError{fmt.Errorf("there is no ledgerd to load (see --ledgerd): %w", err)}
	}
	dir, err := os.MkdirTemp(c.Dir, "ledgerbench-")
	if err != nil {
		return nil, err
	}
	return &bench.Run{
		Ledgerd: program, Self: []string{self, "peer"}, Dir: dir,
		Rounds: c.Rounds, Duration: c.Duration, Scale: c.Scale, Peers: c.Peers,
		Progress: streams.err,
	}, nil
}

// judge tells what came of the goals that were measured.
func (c *runCommand) judge(streams *streams, records []byte) error {
	found, err := report.Read(records, "records")
	if err != nil {
		return err
	}
	unmet := 0
	for i := range bench.Goals {
		j := found.Judge(&bench.Goals[i])
		if j.Verdict == report.Absent {
			continue
		}
		fmt.Fprintf(streams.err, "goal %s: %s\n", j.Verdict, &j)
		if j.Verdict != report.Met {
			unmet++
		}
	}
	if c.Check && unmet > 0 {
		return fmt.Errorf("%d goals are not met", unmet)
	}
	return nil
}

// reportCommand writes the page of results.
type reportCommand struct {
	Records string `arg:"" help:"What run has written." type:"existingfile"`
	Page    string `arg:"" help:"The page to write, in Markdown." type:"path"`
}

// Run refuses records of more than one revision, or of one with changes.
func (c *reportCommand) Run() error {
	content, err := os.ReadFile(c.Records)
	if err != nil {
		return err
	}
	found, err := report.Read(content, c.Records)
	if err == nil {
		err = found.CheckClean()
	}
	if err != nil {
		return err
	}
	var sections []report.Section
	for _, s := range bench.Scenarios {
		sections = append(sections, report.Section{Scenario: s.Name, Help: s.Help})
	}
	var page bytes.Buffer
	if err := found.WritePage(&page, bench.Goals, sections); err != nil {
		return err
	}
	return os.WriteFile(c.Page, page.Bytes(), 0o644)
}
