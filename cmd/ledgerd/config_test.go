package main

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func TestSizeTakesUnits(t *testing.T) {
	tests := map[string]struct {
		want size
		ok   bool
	}{
		"1048576":              {1 << 20, true},
		"512MiB":               {512 << 20, true},
		"2GiB":                 {2 << 30, true},
		"3KiB":                 {3 << 10, true},
		"0":                    {},
		"-1":                   {},
		"2GB":                  {},
		"2 GiB":                {},
		"GiB":                  {},
		"1.5GiB":               {},
		"99999999999GiB":       {},
		"18446744073709551616": {},
		"":                     {},
	}
	for in, tt := range tests {
		var got size
		if err := got.UnmarshalText([]byte(in)); (err == nil) != tt.ok || got != tt.want {
			t.Errorf("size %q = %d, %v; want %d, ok %v", in, got, err, tt.want, tt.ok)
		}
	}
}

func TestPrefixesTakeAddressesAndNetworks(t *testing.T) {
	tests := map[string]struct {
		want []string
		ok   bool
	}{
		"10.0.0.0/8, ::1":  {[]string{"10.0.0.0/8", "::1/128"}, true},
		"10.1.2.3/8":       {[]string{"10.0.0.0/8"}, true},
		"::ffff:127.0.0.1": {[]string{"127.0.0.1/32"}, true},
		"":                 {nil, true},
		"localhost":        {nil, false},
		"10.0.0.0/33":      {nil, false},
	}
	for in, tt := range tests {
		var got prefixes
		err := got.UnmarshalText([]byte(in))
		var texts []string
		for _, p := range got {
			texts = append(texts, netip.Prefix(p).String())
		}
		if (err == nil) != tt.ok || tt.ok && !slices.Equal(texts, tt.want) {
			t.Errorf("prefixes %q = %v, %v; want %v, ok %v", in, texts, err, tt.want, tt.ok)
		}
	}
}

// parse runs the parser alone.
func parse(t *testing.T, args ...string) (commands, error) {
	t.Helper()
	var cli commands
	parser, err := kong.New(&cli, kong.Name("ledgerd"), kong.DefaultEnvars("LEDGERD"), kong.Exit(func(int) { t.Fatal("exited") }),
		kong.BindTo(t.Context(), (*context.Context)(nil)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(args)
	return cli, err
}

func writeFile(t *testing.T, name, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCommandLineWinsOverEnvironmentWinsOverFile(t *testing.T) {
	path := writeFile(t, "ledgerd.yaml", "listen: file:1\ndata-dir: from-file\nsource: from-file\nretain-bytes: 1MiB\nrate-limit-exempt: [10.0.0.0/8, 127.0.0.1]\npprof: true\n")
	t.Setenv("LEDGERD_DATA_DIR", "from-env")
	t.Setenv("LEDGERD_SOURCE", "from-env")
	cli, err := parse(t, "serve", "--config", path, "--source", "from-line")
	if err != nil {
		t.Fatal(err)
	}
	c := cli.Serve
	if c.Source != "from-line" || c.DataDir != "from-env" || c.Listen != "file:1" || c.OpsListen != "127.0.0.1:8081" {
		t.Errorf("source %q, data-dir %q, listen %q, ops-listen %q: line, env, file and default should win in turn", c.Source, c.DataDir, c.Listen, c.OpsListen)
	}
	if c.RetainBytes != 1<<20 || len(c.RateLimitExempt) != 2 || !c.Pprof {
		t.Errorf("typed values from the file: %d, %v, %v", c.RetainBytes, c.RateLimitExempt, c.Pprof)
	}
}

func TestOneFileServesAllCommands(t *testing.T) {
	path := writeFile(t, "ledgerd.yaml", "listen: file:1\ndata-dir: from-file\nwal-sync: interval:2s\n")
	for command, dir := range map[string]func(commands) string{
		"serve":         func(c commands) string { return c.Serve.DataDir },
		"export":        func(c commands) string { return c.Export.DataDir },
		"snapshot list": func(c commands) string { return c.Snapshot.List.DataDir },
		"log verify":    func(c commands) string { return c.Log.Verify.DataDir },
	} {
		cli, err := parse(t, append(strings.Fields(command), "--config", path)...)
		if err != nil || dir(cli) != "from-file" {
			t.Errorf("%s: data-dir %q, %v; want the file's", command, dir(cli), err)
		}
	}
}

func TestBadFlagsAreUsageErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	missing := filepath.Join(t.TempDir(), "absent.yaml")
	tests := map[string][]string{
		"no command":         {},
		"unknown command":    {"launch"},
		"unknown flag":       {"serve", "--speed", "9"},
		"bad number":         {"serve", "--shards", "many"},
		"negative shards":    {"serve", "--shards=-1"},
		"no retention":       {"serve", "--retain-slots", "0"},
		"bad size":           {"serve", "--retain-bytes", "2GB"},
		"no directory":       {"serve", "--data-dir="},
		"bad policy":         {"serve", "--wal-sync", "sometimes"},
		"no interval":        {"serve", "--wal-sync", "interval:0s"},
		"negative interval":  {"serve", "--snapshot-interval=-1s"},
		"tiny segments":      {"serve", "--log-segment-bytes", "1KiB"},
		"negative limit":     {"serve", "--rate-limit-minute=-1"},
		"bad network":        {"serve", "--trusted-proxies", "everyone"},
		"bad level":          {"serve", "--log-level", "loud"},
		"pprof without ops":  {"serve", "--pprof", "--ops-listen="},
		"absent config":      {"serve", "--config", missing},
		"config not YAML":    {"serve", "--config", writeFile(t, "ledgerd.yaml", "]")},
		"config unknown key": {"serve", "--config", writeFile(t, "ledgerd.yaml", "speed: 9\n")},
		"endless config":     {"serve", "--config", "/dev/zero"},
		"endless token":      {"serve", "--source", "geyser:http://127.0.0.1:1?token-file=/dev/zero"},
		"long config":        {"version", "--config", writeFile(t, "ledgerd.yaml", strings.Repeat("\n", maxConfigBytes+1))},
		"absent credentials": {"serve", "--log", "nats://127.0.0.1:1/L", "--log-credentials", missing},
		"long credentials":   {"serve", "--log", "nats://127.0.0.1:1/L", "--log-credentials", writeFile(t, "ledgerd.yaml", strings.Repeat("x", maxCredentialsBytes+1))},
		"bad source":         {"serve", "--source", "kafka:x"},
		"bad sim parameter":  {"serve", "--source", "sim:speed=9"},
		"bad fill":           {"serve", "--fill", "always"},
		"fill from nowhere":  {"serve", "--fill", "on-demand", "--source", "none"},
		"fill from no node":  {"serve", "--fill", "on-demand", "--source", "sim:"},
		"empty listen":       {"serve", "--listen="},
		"bad listen address": {"serve", "--listen", "nowhere"},
	}
	for name, args := range tests {
		if _, errors, code := tool(t, args...); code != exitUsage || strings.Count(errors, "\n") != 1 {
			t.Errorf("%s: ledgerd %q: exit code %d, want %d and one line:\n%s", name, args, code, exitUsage, errors)
		}
	}
	if _, err := os.Stat("data"); err == nil {
		t.Error("the data directory was touched")
	}
}

func TestVersionIsThreeNumbers(t *testing.T) {
	if out, _, code := tool(t, "version"); code != exitOK || out != version+"\n" {
		t.Errorf("ledgerd version: exit code %d, printed %q", code, out)
	}
}
