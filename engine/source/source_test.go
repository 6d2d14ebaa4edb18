package source_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source"
)

func TestOpenDispatchesOnTheScheme(t *testing.T) {
	path := filepath.Join(t.TempDir(), "blocks.ndjson")
	ledgertest.Must(t, os.WriteFile(path, nil, 0o600))
	for spec, tt := range map[string]struct {
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
	} {
		s, err := source.Open(spec, source.Options{Log: slog.New(slog.DiscardHandler)})
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

// What cannot be opened is refused in one line that shows no secret. An entry of testdata/refused.txt is a specification, which may
// be quoted, and a part of the error.
func TestOpenRefusesWhatItCannotOpen(t *testing.T) {
	for _, lines := range datatest.Entries(t, "refused.txt") {
		spec, want := lines[0], strings.TrimSpace(strings.TrimPrefix(lines[1], ">"))
		if plain, err := strconv.Unquote(spec); err == nil {
			spec = plain
		}
		spec = strings.ReplaceAll(spec, "[s3cret, 1000 times]", strings.Repeat("s3cret", 1000))
		s, err := source.Open(spec, source.Options{Log: slog.New(slog.DiscardHandler)})
		if err == nil || s != nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("Open(%q) = %v, %v, want nil and one line with %q and no secret", spec, s, err, want)
		}
	}
}
