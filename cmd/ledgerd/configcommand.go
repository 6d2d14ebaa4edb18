package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	doc "go/doc/comment"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"ledgerd/engine/datadir"
)

type configCommand struct {
	Check  configCheckCommand  `cmd:"" help:"Say what is wrong with a configuration, line by line. Run it on the node's machine, as its user. Nothing is started or made, and no node is asked."`
	Sample configSampleCommand `cmd:"" help:"Print a configuration that names every flag of serve with its default, as comments."`
}

type configCheckCommand struct {
	File string `arg:"" optional:"" help:"The configuration; by default that of --config."`
}

// Run prints a line for each thing that is wrong.
func (c *configCheckCommand) Run(ctx context.Context, s *streams, cli *commands) error {
	path := cmp.Or(c.File, string(cli.Config))
	if path == "" {
		return &usageError{errors.New("name the configuration that is to be checked")}
	}
	content, err := readConfig(path)
	if err != nil {
		return &usageError{err}
	}
	wrong := checkSettings(ctx, content)
	for _, w := range wrong {
		fmt.Fprintf(s.err, "%s: %v\n", path, w)
	}
	if len(wrong) > 0 {
		return &usageError{fmt.Errorf("%s cannot be used; errors: %d", path, len(wrong))}
	}
	fmt.Fprintf(s.out, "%s: ok\n", path)
	return nil
}

// checkSettings returns everything that is wrong with a configuration, by line. Each command that the file has a flag of gets the
// file's settings as its command line, again and again, each time without the one that it refused last.
func checkSettings(ctx context.Context, content []byte) []*settingError {
	settings, wrong := parseSettings(newParser(&commands{}).Model.Node, content)
	for _, command := range newParser(&commands{}).Model.Leaves(false) {
		var cli commands
		for {
			cli = commands{}
			err := parse(command, settings, &cli)
			at := settingNamed(settings, err)
			if at < 0 { // nothing is wrong, or what is missing stands on the command line
				break
			}
			wrong = append(wrong, &settingError{settings[at].line, err.Error()})
			settings = slices.Delete(settings, at, at+1)
		}
		if command.Name != "serve" {
			continue
		}
		for _, err := range cli.Serve.refusals(ctx, settings) {
			if at := settingNamed(settings, err); at >= 0 {
				wrong = append(wrong, &settingError{settings[at].line, err.Error()})
			}
		}
	}
	slices.SortStableFunc(wrong, func(a, b *settingError) int { return cmp.Compare(a.line, b.line) })
	return wrong
}

// parse parses the settings that are for a command.
func parse(command *kong.Node, settings []setting, cli *commands) error {
	args := strings.Fields(command.Path())
	for _, s := range settings {
		if hasFlag(command, s.name) {
			args = append(args, "--"+s.name+"="+s.value)
		}
	}
	_, err := newParser(cli, kong.Writers(io.Discard, io.Discard)).Parse(args)
	return err
}

var flagNames = regexp.MustCompile(`--[a-z][a-z0-9-]*`)

// settingNamed returns the first setting whose flag an error names, -1 if there is none.
func settingNamed(settings []setting, err error) int {
	if err == nil {
		return -1
	}
	named := flagNames.FindAllString(err.Error(), -1)
	return slices.IndexFunc(settings, func(s setting) bool { return slices.Contains(named, "--"+s.name) })
}

// refusals returns what the start would say to all that it opens, but that it is in use. Each names its flag. A port that no setting names is left
// alone.
func (c *serveCommand) refusals(ctx context.Context, settings []setting) (all []error) {
	note := func(flag string, err error) {
		if err != nil && !flagNames.MatchString(err.Error()) {
			err = fmt.Errorf("%s: %w", flag, err)
		}
		if err != nil {
			all = append(all, err)
		}
	}
	n := &node{logger: slog.New(slog.DiscardHandler)}
	for _, o := range c.openings(ctx, n) {
		switch {
		case o.check == nil:
			note(o.flag, o.open())
		case settingNamed(settings, errors.New(o.flag)) >= 0:
			note(o.flag, o.check())
		}
	}
	err := mayBecome(c.DataDir, true)
	if err == nil {
		_, err = c.openDir(datadir.View, n.source)
	}
	note("--data-dir", err)
	return all
}

type configSampleCommand struct{}

// Run prints the sample. What starts with "#" and a letter is a setting; a flag without a default shows the form of its values.
func (c *configSampleCommand) Run(s *streams, app *kong.Kong) error {
	fmt.Fprint(s.out, sampleHead)
	serve := app.Model.Children[slices.IndexFunc(app.Model.Children, func(n *kong.Node) bool { return n.Name == "serve" })]
	group := ""
	for _, f := range serve.Flags {
		if f.Hidden {
			continue
		}
		if f.Group.Title != group {
			group = f.Group.Title
			fmt.Fprintf(s.out, "\n# ---- %s ----\n", strings.TrimSuffix(group, ":"))
		}
		fmt.Fprintf(s.out, "\n%s", comment(f.Help))
		switch {
		case f.HasDefault:
			fmt.Fprintf(s.out, "#%s: %s\n", f.Name, quoted(f.Default))
		case f.IsBool():
			fmt.Fprintf(s.out, "#%s: false\n", f.Name)
		default:
			fmt.Fprintf(s.out, "# %s: %s   (not set)\n", f.Name, f.FormatPlaceHolder())
		}
	}
	return nil
}

const sampleHead = `# The configuration of ledgerd, as ledgerd serve --config FILE reads it: one 'flag: value' a line.
#
# The command line wins over LEDGERD_… in the environment, the environment over this file, and this file over the defaults, which are
# what the lines below say. Take the # away in front of a setting and change its value. ledgerd config check FILE says what is wrong
# with a file, by line. A running node reads log-level, rate-limit-minute, rate-limit-hour, rate-limit-exempt, max-conns,
# max-conns-per-client, max-sockets, max-sockets-per-client, ws-origins, and the files of api-keys, tls-cert and tls-client-ca again at
# SIGHUP, and opens access-log anew; all else is read at the start.
`

// quoted returns a value as YAML takes it for a text.
func quoted(value string) string {
	if value == "" || strings.HasSuffix(value, ":") {
		return `"` + value + `"`
	}
	return value
}

// comment breaks a text into lines of a comment.
func comment(text string) string {
	printer := doc.Printer{TextPrefix: "# ", TextWidth: 118}
	return string(printer.Text(new(doc.Parser).Parse(text)))
}
