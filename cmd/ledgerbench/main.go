// Command ledgerbench loads ledgerd and measures what comes back. This package holds flags
// and wiring; the load is in package bench.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"ledgerd/bench/peer"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1 // a scenario could not be run, or with --check a goal was missed
	exitUsage   = 2 // bad flags
)

// usageError is an error in what was asked for.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// commands are one for each side of the server that is loaded.
type commands struct {
	WS      wsCommand      `cmd:"" name:"ws" help:"Load the WebSocket stream."`
	REST    restCommand    `cmd:"" name:"rest" help:"Load the REST interface."`
	Mixed   mixedCommand   `cmd:"" help:"Load the REST interface while blocks come in."`
	Ingest  ingestCommand  `cmd:"" help:"Have a ledger read from a file."`
	Recover recoverCommand `cmd:"" help:"Have a server start with a ledger in its data directory."`
	Memory  memoryCommand  `cmd:"" help:"Have a ledger held in memory."`
	Cluster clusterCommand `cmd:"" help:"Have several nodes share one log on nats-servers."`
	All     allCommand     `cmd:"" help:"All of these, one after the other, in one report."`
	Results resultsCommand `cmd:"" help:"Write the page of results that --markdown has kept, without measuring."`
	Peer    peerCommand    `cmd:"" hidden:"" help:"Be one of the services that ledgerd is compared with."`
	Helper  helperCommand  `cmd:"" hidden:"" help:"Be a part of a scenario's load."`
}

// peerCommand is what this program starts itself as.
type peerCommand struct {
	Name string `arg:"" help:"raw, hub, bare, nethttp or canned."`
}

func (c *peerCommand) Run(ctx context.Context, streams *streams) error {
	return peer.Serve(ctx, c.Name, streams.in, streams.out)
}

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
	command  string // as it was typed
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], &streams{os.Stdin, os.Stdout, os.Stderr, strings.Join(append([]string{"ledgerbench"}, os.Args[1:]...), " ")}))
}

// run parses the arguments, runs the command they name, and returns the exit code.
func run(ctx context.Context, args []string, s *streams) int {
	var cli commands
	exited := -1 // set when help was printed
	parser, err := kong.New(&cli,
		kong.Name("ledgerbench"),
		kong.Description("Loads ledgerd and measures what comes back: one that it starts itself or, with --url, one that runs; beside other services if asked. `COMMAND --help` names the scenarios."),
		kong.Writers(s.out, s.err),
		kong.Exit(func(code int) { exited = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
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
