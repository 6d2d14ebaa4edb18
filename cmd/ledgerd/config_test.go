package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/wal"
)

// The sample is the file that packages install. With each # taken away it checks, and says each default of serve; the manual names each flag.
func TestSampleConfiguration(t *testing.T) {
	const shipped = "deploy/ledgerd.yaml"
	out := toolSays(t, exitOK, "", "config", "sample")
	ledgertest.Golden(t, shipped, out, *update)
	content := regexp.MustCompile(`(?m)^#([a-z])`).ReplaceAll([]byte(out), []byte("$1"))
	if wrong := checkSettings(t.Context(), content); len(wrong) > 0 {
		t.Errorf("the sample is refused: %q", wrong)
	}
	app := newParser(&commands{}).Model.Node
	settings, _ := parseSettings(app, content)
	start := readFile(t, "../../httpd/console/manual/start.md")
	for _, f := range app.Leaves(false)[0].Flags { // of serve
		if !f.Hidden && !bytes.Contains(start, []byte("`--"+f.Name+"`")) {
			t.Errorf("the manual lacks --%s", f.Name)
		}
		i := slices.IndexFunc(settings, func(s setting) bool { return s.name == f.Name })
		switch {
		case f.Hidden && i < 0:
		case i < 0 && !f.HasDefault && strings.Contains(out, "\n# "+f.Name+": "):
		case i < 0 || f.HasDefault && settings[i].value != f.Default:
			t.Errorf("--%s: the sample does not say the default %q", f.Name, f.Default)
		}
	}
}

// Sizes take units, and lists of networks take addresses too: a line is a type, a value, and what that is read as, or why it is refused.
func TestValuesOfFlagsAreRead(t *testing.T) {
	var read strings.Builder
	for line := range strings.Lines(string(readFile(t, "testdata/values.txt"))) {
		var kind, in string
		_, err := fmt.Sscanf(line, "%s %q", &kind, &in)
		must(t, err)
		value := map[string]encoding.TextUnmarshaler{"size": new(size), "sizeOrNone": new(sizeOrNone), "prefixes": new(prefixes), "policy": new(wal.Policy(time.Hour))}[kind]
		if err := value.UnmarshalText([]byte(in)); err != nil {
			fmt.Fprintf(&read, "%s %q refused: %v\n", kind, in, err)
		} else {
			fmt.Fprintf(&read, "%s %q %v\n", kind, in, reflect.ValueOf(value).Elem())
		}
	}
	ledgertest.Golden(t, "testdata/values.txt", read.String(), *update)
}

// What a command line that may be refused says of its messages' format, and of its configuration, is what kong makes of one that it takes.
func TestTheFormatOfMessagesIsWhatTheParserTakes(t *testing.T) {
	path := t.TempDir()
	for name, content := range map[string]string{"json": "log-format: json", "text": "log-format: text", "silent": "listen: :1"} {
		must(t, os.WriteFile(filepath.Join(path, name), []byte(content), 0o600))
	}
	t.Chdir(path)
	for _, row := range []struct{ format, config, words string }{ // of the environment, -: not set
		{"-", "-", ""},
		{"-", "-", "--log-format json"},
		{"-", "-", "--log-format=json"},
		{"-", "-", "--log-format json --log-format=text"},
		{"-", "-", "--log-format=text --log-format json"},
		{"-", "-", "--source none --log-format=json --config json"},
		{"json", "-", ""},
		{"json", "-", "--log-format text"},
		{"json", "-", "--log-format=text"},
		{"json", "-", "--config text"},
		{"text", "-", "--config=json"},
		{"-", "-", "--config json"},
		{"-", "-", "--config=json"},
		{"-", "-", "--config=json --config text"},
		{"-", "-", "--config json --log-format text"},
		{"-", "-", "--config silent"},
		{"-", "json", ""},
		{"-", "", ""},
		{"-", "json", "--config text"},
		{"-", "text", "--config=json"},
		{"-", "json", "--log-format=text"},
		{"-", "json", "--config="},
	} {
		t.Run(fmt.Sprint(row), func(t *testing.T) {
			for name, value := range map[string]string{"LEDGERD_LOG_FORMAT": row.format, "LEDGERD_CONFIG": row.config} {
				t.Setenv(name, value)
				if value == "-" {
					must(t, os.Unsetenv(name))
				}
			}
			args := append([]string{"serve"}, strings.Fields(row.words)...)
			var cli commands
			_, err := newParser(&cli, fromEnvironment).Parse(args)
			must(t, err)
			ledgertest.Equal(t, cmp.Or(messageFormat(args), "text"), cli.Serve.LogFormat, "the format")
			ledgertest.Equal(t, saidOf(args, "config"), string(cli.Config), "the configuration")
		})
	}
}

// A port that a configuration names is not listened on while it is checked: a node that begins meanwhile gets it, and nobody is let in.
func TestACheckOfAPortLeavesItToOthers(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "[::1]", "0.0.0.0", ""} {
		free, err := net.Listen("tcp", host+":0")
		if host == "[::1]" && err != nil {
			continue // this machine has no IPv6
		}
		must(t, err)
		address := fmt.Sprint(host, ":", free.Addr().(*net.TCPAddr).Port)
		must(t, mayListen(t.Context(), address)) // in use, perhaps by the node whose configuration it is
		must(t, free.Close())
		ctx, end := context.WithCancel(t.Context())
		var checks errgroup.Group
		checks.Go(func() (err error) {
			for err == nil && ctx.Err() == nil {
				err = mayListen(t.Context(), address)
			}
			return err
		})
		for range 300 {
			if c, err := net.Dial("tcp", address); err == nil {
				c.Close()
				t.Errorf("%s: a client is let in", address)
				break
			}
			node, err := net.Listen("tcp", address)
			if err != nil {
				t.Errorf("a node cannot start: %v", err)
				break
			}
			node.Close()
		}
		end()
		must(t, checks.Wait())
	}
}
