package source_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ledgerd/engine/source"
	"ledgerd/engine/source/file"
	"ledgerd/engine/source/sim"
)

func TestOpenDispatchesOnTheScheme(t *testing.T) {
	path := filepath.Join(t.TempDir(), "blocks.ndjson")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)

	s, err := source.Open("sim:seed=7", log)
	if err != nil {
		t.Fatalf("Open(sim:seed=7): %v", err)
	}
	if _, ok := s.(*sim.Source); !ok || s.Info().Name != "sim:seed=7" {
		t.Errorf("Open(sim:seed=7) = %T named %q", s, s.Info().Name)
	}
	s, err = source.Open("file:"+path, log)
	if err != nil {
		t.Fatalf("Open(file:%s): %v", path, err)
	}
	if _, ok := s.(*file.Source); !ok {
		t.Errorf("Open(file:…) = %T", s)
	}
	if s, err = source.Open("none", log); s != nil || err != nil {
		t.Errorf("Open(none) = %v, %v, want nil, nil", s, err)
	}
}

func TestOpenRefusesWhatItCannotOpen(t *testing.T) {
	tests := map[string]string{ // specification: part of the error
		"":                            "sim:PARAMETERS, file:PATHS or none",
		"sim":                         "sim:PARAMETERS, file:PATHS or none",
		"None":                        "sim:PARAMETERS, file:PATHS or none",
		"none:":                       `no source "none"`,
		"ftp://host/blocks":           `no source "ftp"`,
		"rpc:http://localhost:8899":   "does not offer the source rpc",
		"geyser:http://localhost:100": "does not offer the source geyser",
		"sim:tps=lots":                `tps="lots" must be a whole number`,
		"file:/no/such/file":          "file source: ",
		"file:":                       "file source: ",
	}
	for spec, want := range tests {
		s, err := source.Open(spec, slog.New(slog.DiscardHandler))
		if err == nil || s != nil {
			t.Errorf("Open(%q) = %v, %v, want an error and nil", spec, s, err)
			continue
		}
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Open(%q): err = %q, want one line with %q", spec, err, want)
		}
	}
}
