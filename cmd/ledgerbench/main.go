// Command ledgerbench loads ledgerd and measures what comes back. This package holds flags and output; the load is in package
// bench and those below it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"ledgerd/bench/peer"
	"ledgerd/cmd/internal/build"
	"ledgerd/cmd/internal/signals"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1 // a server is not reached, a scenario cannot be run, or with --check a goal was not met
	exitUsage   = 2 // bad flags
)

// usageError is an error in what was asked for.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// commands are for users who load a server of theirs, and for those who measure this project.
type commands struct {
	ShowVersion kong.VersionFlag `help:"Print the version, as the command does." name:"version" short:"v"`

	Load    loadCommand    `cmd:"" help:"Ask a running server over HTTP, at a rate, and tell how long answers take."`
	Listen  listenCommand  `cmd:"" help:"Subscribe to a running server with many WebSockets, and tell what arrives, and how late."`
	Run     runCommand     `cmd:"" help:"Run scenarios against servers that are started for that, in turns with other services if asked."`
	Report  reportCommand  `cmd:"" help:"Write the page of results from what run has written."`
	Version versionCommand `cmd:"" help:"Print the version, the revision of the sources, and the version of Go."`
	Peer    peerCommand    `cmd:"" hidden:"" help:"Be one of the services that ledgerd is compared with."`
}

type versionCommand struct{}

func (versionCommand) Run(s *streams) error {
	_, err := fmt.Fprintln(s.out, build.Line("ledgerbench"))
	return err
}

// peerCommand is what this program starts itself as.
type peerCommand struct {
	Name, Address, Told string `arg:""`
}

func (c *peerCommand) Run() error { return peer.Serve(c.Name, c.Address, c.Told) }

// streams are where a command reads and writes.
type streams struct {
	out, err io.Writer
	command  string // as it was typed
}

func main() {
	// A load waits for the time of each request in the kernel, on a thread that keeps its processor (P) until the runtime's monitor looks, up to 10 ms
	// later. Were there one alone, nothing else would be sent or read meanwhile.
	runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
	os.Exit(run(signals.Context(), os.Args[1:], &streams{os.Stdout, os.Stderr, strings.Join(append([]string{"ledgerbench"}, os.Args[1:]...), " ")}))
}

// run parses the arguments, runs the command they name, and returns the exit code.
func run(ctx context.Context, args []string, s *streams) int {
	if len(args) > 0 && args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	var cli commands
	exited := -1 // set when help was printed
	parser, err := kong.New(&cli,
		kong.Name("ledgerbench"),
		kong.Description("Loads ledgerd and measures what comes back."),
		kong.Vars{"version": build.Line("ledgerbench")},
		kong.Writers(s.out, s.err),
		kong.Exit(func(code int) { exited = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.ValueFormatter(func(v *kong.Value) string { return v.Help }), // no flag is taken from the environment
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(s),
	)
	if err != nil {
		panic(err) // the declarations above are wrong
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 {
		return exited
	}
	if err != nil {
		fmt.Fprintf(s.err, "ledgerbench: %v (see ledgerbench --help)\n", err)
		return exitUsage
	}
	if err := parsed.Run(); err != nil {
		fmt.Fprintf(s.err, "ledgerbench: %v\n", err)
		if usage := (*usageError)(nil); errors.As(err, &usage) {
			return exitUsage
		}
		return exitFailure
	}
	return exitOK
}
