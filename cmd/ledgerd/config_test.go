package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The sample is the file that packages install. With each # taken away it checks, and says each default of serve; the manual names each flag.
func TestSampleConfiguration(t *testing.T) {
	const shipped = "deploy/ledgerd.yaml"
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"config", "sample"}, &streams{&out, &errs}); code != exitOK {
		t.Fatalf("exit code %d, said %q", code, &errs)
	}
	if *update {
		must(t, os.WriteFile(shipped, out.Bytes(), 0o644))
	}
	if content, err := os.ReadFile(shipped); err != nil || !bytes.Equal(content, out.Bytes()) {
		t.Errorf("%s is not what config sample prints (%v): go test ./cmd/ledgerd -run %s -update", shipped, err, t.Name())
	}
	content := regexp.MustCompile(`(?m)^#([a-z])`).ReplaceAll(out.Bytes(), []byte("$1"))
	if wrong := checkSettings(content); len(wrong) > 0 {
		t.Errorf("the sample is refused: %q", wrong)
	}
	app := newParser(&commands{}).Model.Node
	settings, _ := parseSettings(app, content)
	start, err := os.ReadFile("../../httpd/console/manual/start.md")
	must(t, err)
	for _, f := range app.Leaves(false)[0].Flags { // of serve
		if !f.Hidden && !bytes.Contains(start, []byte("`--"+f.Name+"`")) {
			t.Errorf("the manual lacks --%s", f.Name)
		}
		i := slices.IndexFunc(settings, func(s setting) bool { return s.name == f.Name })
		switch {
		case f.Hidden && i < 0:
		case i < 0 && !f.HasDefault && strings.Contains(out.String(), "\n# "+f.Name+": "):
		case i < 0 || f.HasDefault && settings[i].value != f.Default:
			t.Errorf("--%s: the sample does not say the default %q", f.Name, f.Default)
		}
	}
}

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
			texts = append(texts, p.String())
		}
		if (err == nil) != tt.ok || tt.ok && !slices.Equal(texts, tt.want) {
			t.Errorf("prefixes %q = %v, %v; want %v, ok %v", in, texts, err, tt.want, tt.ok)
		}
	}
}
