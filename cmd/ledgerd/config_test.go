package main

import (
	"bytes"
	"encoding"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

// The sample is the file that packages install. With each # taken away it checks, and says each default of serve; the manual names each flag.
func TestSampleConfiguration(t *testing.T) {
	const shipped = "deploy/ledgerd.yaml"
	out, errs, code := tool(t, "config", "sample")
	if code != exitOK {
		t.Fatalf("exit code %d, said %q", code, errs)
	}
	if *update {
		must(t, os.WriteFile(shipped, []byte(out), 0o644))
	}
	if content, err := os.ReadFile(shipped); err != nil || string(content) != out {
		t.Errorf("%s is not what config sample prints (%v): go test ./cmd/ledgerd -run %s -update", shipped, err, t.Name())
	}
	content := regexp.MustCompile(`(?m)^#([a-z])`).ReplaceAll([]byte(out), []byte("$1"))
	if wrong := checkSettings(content); len(wrong) > 0 {
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

// Sizes take units, and lists of networks take addresses too.
func TestValuesOfFlagsAreRead(t *testing.T) {
	const refused = "refused"
	for _, tt := range []struct {
		value    encoding.TextUnmarshaler
		in, want string
	}{
		{new(size), "1048576", "1048576"},
		{new(size), "512MiB", "536870912"},
		{new(size), "2GiB", "2147483648"},
		{new(size), "3KiB", "3072"},
		{new(size), "0", refused},
		{new(size), "-1", refused},
		{new(size), "2GB", refused},
		{new(size), "2 GiB", refused},
		{new(size), "GiB", refused},
		{new(size), "1.5GiB", refused},
		{new(size), "99999999999GiB", refused},
		{new(size), "18446744073709551616", refused},
		{new(size), "", refused},
		{new(sizeOrNone), "0", "0"},
		{new(sizeOrNone), "2GiB", "2147483648"},
		{new(sizeOrNone), "00", refused},
		{new(prefixes), "10.0.0.0/8, ::1", "[10.0.0.0/8 ::1/128]"},
		{new(prefixes), "10.1.2.3/8", "[10.0.0.0/8]"},
		{new(prefixes), "::ffff:127.0.0.1", "[127.0.0.1/32]"},
		{new(prefixes), "", "[]"},
		{new(prefixes), "localhost", refused},
		{new(prefixes), "10.0.0.0/33", refused},
	} {
		got := refused
		if err := tt.value.UnmarshalText([]byte(tt.in)); err == nil {
			got = fmt.Sprint(reflect.ValueOf(tt.value).Elem())
		}
		ledgertest.Equal(t, got, tt.want, "%T %q is read as", tt.value, tt.in)
	}
}

// A number is what a person reads, not what C reads.
func TestNumbersAreDecimal(t *testing.T) {
	for given, want := range map[string]int{"0100": 100, "100": 100, "08": 8, "0x10": -1, "0b11": -1, "1_000": -1, "1e3": -1, "0o17": -1} {
		var cli commands
		_, err := newParser(&cli).Parse([]string{"serve", "--rate-limit-minute", given, "--retain-slots", given, "--fill-up-to", given})
		if s := cli.Serve; (err == nil) != (want >= 0) || want >= 0 && (s.RateLimitMinute != want || int(s.RetainSlots) != want || int(s.FillUpTo) != want) {
			t.Errorf("%s: %d, %d and %d, %v; want %d", given, s.RateLimitMinute, s.RetainSlots, s.FillUpTo, err, want)
		}
	}
}
