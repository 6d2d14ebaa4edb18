package source_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source"
)

func TestOpenDispatchesOnTheScheme(t *testing.T) {
	path := filepath.Join(t.TempDir(), "blocks.ndjson")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		is, name string
		live     bool
		fetches  bool // its node can be asked for accounts
	}{
		"none":         {"<nil>", "", false, false},
		"sim:seed=7":   {"*sim.Source", "sim:seed=7", false, false},
		"file:" + path: {"*file.Source", "file:" + path, false, false},
		"rpc:https://user:secret@node.example/path-secret?api-key=secret&accounts=none": {
			"*rpc.Source", "rpc:https://node.example", true, true},
		"geyser:https://node.example?token=secret": {
			"*geyser.Source", "geyser:https://node.example:443", true, false},
		"geyser:http://node.example:1?token=secret&rpc=http://node.example:2/secret": {
			"*source.filled", "geyser:http://node.example:1", true, true},
	}
	for spec, tt := range tests {
		s, err := source.Open(spec, slog.New(slog.DiscardHandler))
		var info ledger.SourceInfo
		if s != nil {
			info = s.Info()
		}
		_, fetches := s.(ledger.Fetcher)
		if err != nil || fmt.Sprintf("%T", s) != tt.is || info.Name != tt.name || info.Live != tt.live || fetches != tt.fetches {
			t.Errorf("Open(%q) = %T, %+v, %v, want %+v", spec, s, info, err, tt)
		}
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
		if err == nil || s != nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Open(%q) = %v, %v, want nil and one line with %q", spec, s, err, want)
		}
	}
}
