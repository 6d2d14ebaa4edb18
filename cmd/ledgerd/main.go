// Command ledgerd is an in-memory query node for a Solana-like ledger. This package holds
// flags, signals and wiring; it is the only one that knows all others.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"github.com/alecthomas/kong"

	"ledgerd/cmd/internal/build"
	"ledgerd/cmd/internal/signals"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1 // something failed while running, or the data directory is refused
	exitUsage   = 2 // bad flags or configuration, or a port in use; the data directory is untouched
)

// usageError is an error in what the operator asked for.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

type commands struct {
	Config configFile `help:"Read flags from a YAML file: one 'flag: value' a line, without the dashes." placeholder:"FILE"`

	ShowVersion kong.VersionFlag `help:"Print the version, as the command does." name:"version" short:"v" env:"-"`

	Serve    serveCommand    `cmd:"" help:"Follow a source of blocks and answer questions about it."`
	Import   importCommand   `cmd:"" help:"Fill a new data directory from a validator's snapshot archive."`
	Export   exportCommand   `cmd:"" help:"Write the ledger of a data directory so that file: reads it."`
	Top      topCommand      `cmd:"" help:"Watch a running node in the terminal."`
	Sub      subCommand      `cmd:"" help:"Print what happens to accounts, without a gap, from where it was left."`
	Backup   backupCommand   `cmd:"" help:"Copy the data directory of a running node, over its operators' listener."`
	Diff     diffCommand     `cmd:"" help:"Say whether two running nodes hold the same state at a slot, over their operators' listeners, and what differs first."`
	Snapshot snapshotCommand `cmd:"" help:"Look at the snapshots of a data directory; a running node may go on."`
	Log      logCommand      `cmd:"" help:"Look at the log of a data directory; a running node may go on."`
	Key      keyCommand      `cmd:"" help:"Make, revoke and list API keys."`
	Settings configCommand   `cmd:"" help:"Check a configuration, or print one to begin with." name:"config"`
	Version  versionCommand  `cmd:"" help:"Print the version, the revision of the sources, and the version of Go."`
}

type versionCommand struct{}

func (versionCommand) Run(streams *streams) error {
	fmt.Fprintln(streams.out, build.Line("ledgerd"))
	return nil
}

// streams are where a command writes. It need not look at the errors of out: run does, at its end.
type streams struct{ out, err io.Writer }

// report is what a command writes to standard output, with the first error of that.
type report struct {
	io.Writer
	failed error
}

func (r *report) Write(p []byte) (n int, err error) {
	n, err = r.Writer.Write(p)
	r.failed = cmp.Or(r.failed, err)
	return n, err
}

// lost returns why the report is not whole. A reader that has had enough, such as head, is no failure.
func (r *report) lost() error {
	if r.failed == nil || errors.Is(r.failed, syscall.EPIPE) {
		return nil
	}
	return fmt.Errorf("cannot print: %w", r.failed)
}

func main() {
	if slices.Contains(os.Args, "serve") {
		// SIGHUP until serve waits for it, SIGPIPE for good: who reads the messages, such as tee, may end before the node.
		signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	}
	os.Exit(run(signals.Context(), os.Args[1:], &streams{os.Stdout, os.Stderr}))
}

// run parses the arguments, runs the command they name, and returns the exit code.
func run(ctx context.Context, args []string, s *streams) int {
	if len(args) > 0 && args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	var cli commands
	out := &report{Writer: s.out}
	exited := -1 // set when help was printed
	parser := newParser(&cli,
		fromEnvironment,
		kong.Writers(out, s.err),
		kong.Exit(func(code int) { exited = code }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(&streams{out, s.err}, &cli, arguments(args)),
	)
	parsed, err := parser.Parse(args)
	if err == nil {
		err = twice(parsed)
	}
	failed, _ := errors.AsType[*kong.ParseError](err)
	switch {
	case exited >= 0 || out.failed != nil: // help or the version, which no command printed
		if err = out.lost(); err == nil {
			return max(exited, exitOK)
		}
	case err == nil:
		if err = parsed.Run(); err == nil && parsed.Command() != "serve" { // a node goes on without its banner
			err = out.lost()
		}
	default:
		err = &usageError{fmt.Errorf("%s (see %s)", misuse(failed, err), helpFor(args, failed))}
	}
	switch {
	case err == nil:
		return exitOK
	case slices.Contains(args, "serve") && messageFormat(args) == "json":
		newLogger(s.err, "json", slog.LevelError).Error("failed", "error", printable(err.Error()))
	default:
		fmt.Fprintf(s.err, "ledgerd: %s\n", printable(err.Error()))
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	return exitFailure
}

// twice refuses a list that is given twice, of which the last alone would count.
func twice(parsed *kong.Context) error {
	given := map[*kong.Flag]bool{}
	for _, p := range parsed.Path {
		if p.Flag == nil || p.Resolved {
			continue
		}
		switch p.Flag.Target.Interface().(type) {
		case keys, prefixes, dataPrograms:
			if given[p.Flag] {
				return fmt.Errorf("--%s is given twice: it takes one list, separated by commas", p.Flag.Name)
			}
			given[p.Flag] = true
		}
	}
	return nil
}

// misuse says what is wrong with the arguments.
func misuse(failed *kong.ParseError, err error) string {
	text := strings.Replace(err.Error(), `but got "EOL" (<EOL>)`, "and there is none", 1)
	if failed != nil && strings.HasPrefix(text, "unexpected argument http") && slices.ContainsFunc(failed.Context.Flags(), func(f *kong.Flag) bool { return f.Name == "url" }) {
		text += ": --url is for that"
	}
	return text
}

// printable returns text without what a terminal would obey: parts of it may come from a server that is not the node it says it is.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsGraphic(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// helpFor returns what tells more of a command line that was refused: with a configuration that is what names its lines.
func helpFor(args []string, failed *kong.ParseError) string {
	if path := saidOf(args, "config"); path != "" {
		return "ledgerd config check " + path
	}
	if failed != nil {
		if command := failed.Context.Selected(); command != nil {
			return "ledgerd " + command.Path() + " --help"
		}
	}
	return "ledgerd --help"
}

// saidOf returns the value of a flag that the words of a command line, or else the environment, tell: where they are refused, kong may not have
// read as far as there.
func saidOf(args []string, name string) string {
	value := os.Getenv(envPrefix + "_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
	for i, word := range args {
		if after, found := strings.CutPrefix(word, "--"+name+"="); found {
			value = after
		} else if word == "--"+name && i+1 < len(args) {
			value = args[i+1]
		}
	}
	return value
}

// messageFormat returns the value of --log-format, from where it has it, for a command line that may be refused.
func messageFormat(args []string) string {
	if format := saidOf(args, "log-format"); format != "" {
		return format
	}
	content, err := readConfig(saidOf(args, "config"))
	if err != nil {
		return ""
	}
	settings, _ := parseSettings(newParser(&commands{}).Model.Node, content)
	for _, s := range settings {
		if s.name == "log-format" {
			return s.value
		}
	}
	return ""
}

// envPrefix begins the names of the variables that stand for flags.
const envPrefix = "LEDGERD"

// fromEnvironment is for parsers that also take flags from there.
var fromEnvironment = kong.DefaultEnvars(envPrefix)

// newParser returns a parser of the command line into cli.
func newParser(cli *commands, options ...kong.Option) *kong.Kong {
	parser, err := kong.New(cli, append([]kong.Option{
		kong.Name("ledgerd"),
		kong.Description("An in-memory query node for a Solana-like ledger: REST, WebSocket, Prometheus. A flag can also be set as the variable of the environment that its help names, LEDGERD_…."),
		kong.Vars{"version": build.Line("ledgerd")},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	}, slices.Concat(decimals, options)...)...)
	if err != nil {
		panic(err) // the declarations above are wrong
	}
	return parser
}
