package source_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source"
	"ledgerd/engine/source/file"
	"ledgerd/engine/source/geyser"
	"ledgerd/engine/source/rpc"
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
	s, err = source.Open("rpc:https://user:secret@node.example/path-secret?api-key=secret&accounts=none", log)
	if err != nil {
		t.Fatalf("Open(rpc:https://…): %v", err)
	}
	if _, ok := s.(*rpc.Source); !ok || s.Info().Name != "rpc:https://node.example" || !s.Info().Live {
		t.Errorf("Open(rpc:https://…) = %T, %+v", s, s.Info())
	}
	s, err = source.Open("geyser:https://node.example?token=secret", log)
	if err != nil {
		t.Fatalf("Open(geyser:https://…): %v", err)
	}
	if _, ok := s.(*geyser.Source); !ok || s.Info().Name != "geyser:https://node.example:443" || !s.Info().Live {
		t.Errorf("Open(geyser:https://…) = %T, %+v", s, s.Info())
	}
	if _, ok := s.(ledger.Fetcher); ok {
		t.Error("a stream without rpc= says that its node can be asked for accounts")
	}
	s, err = source.Open("geyser:http://node.example:1?token=secret&rpc=http://node.example:2/secret", log)
	if err != nil {
		t.Fatalf("Open(geyser:…rpc=…): %v", err)
	}
	if _, ok := s.(ledger.Fetcher); !ok || strings.Contains(s.Info().Name, "secret") {
		t.Errorf("Open(geyser:…rpc=…) = %T named %q", s, s.Info().Name)
	}
	if s, err = source.Open("none", log); s != nil || err != nil {
		t.Errorf("Open(none) = %v, %v, want nil, nil", s, err)
	}
}

func TestOpenRefusesWhatItCannotOpen(t *testing.T) {
	tests := map[string]string{ // specification: part of the error
		"":                          "sim:PARAMETERS, file:PATHS, rpc:URL, geyser:URL or none",
		"sim":                       "sim:PARAMETERS, file:PATHS, rpc:URL, geyser:URL or none",
		"None":                      "sim:PARAMETERS, file:PATHS, rpc:URL, geyser:URL or none",
		"none:":                     `no source "none"`,
		"ftp://host/blocks":         `no source "ftp"`,
		"rpc:localhost:8899":        "rpc source: the address is not http://HOST:PORT",
		"geyser:localhost:100":      "geyser source: the address is not http://HOST:PORT",
		"geyser:http://h:1?rpc=h:2": "geyser source: rpc=: rpc source: the address is not http",
		"sim:tps=lots":              `tps="lots" must be a whole number`,
		"file:/no/such/file":        "file source: ",
		"file:":                     "file source: ",
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
