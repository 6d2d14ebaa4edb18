package main

import (
	"bytes"
	"encoding"
	"fmt"
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

// Sizes take units, and lists of networks take addresses too: a line is a type, a value, and what that is read as.
func TestValuesOfFlagsAreRead(t *testing.T) {
	var read strings.Builder
	for line := range strings.Lines(string(readFile(t, "testdata/values.txt"))) {
		var kind, in string
		_, err := fmt.Sscanf(line, "%s %q", &kind, &in)
		must(t, err)
		value := map[string]encoding.TextUnmarshaler{"size": new(size), "sizeOrNone": new(sizeOrNone), "prefixes": new(prefixes)}[kind]
		got := any("refused")
		if value.UnmarshalText([]byte(in)) == nil {
			got = reflect.ValueOf(value).Elem()
		}
		fmt.Fprintf(&read, "%s %q %v\n", kind, in, got)
	}
	ledgertest.Golden(t, "testdata/values.txt", read.String(), *update)
}
