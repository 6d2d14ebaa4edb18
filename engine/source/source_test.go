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
	for spec, want := range map[string]string{ // its type and name, whether it is live, and whether its node can be asked for accounts
		"none":         "<nil>  false false",
		"sim:seed=7":   "*sim.Source sim:seed=7 false false",
		"file:" + path: "*file.Source file:" + path + " false false",
		"rpc:https://user:secret@node.example/path-secret?api-key=secret&accounts=none": "*rpc.Source rpc:https://node.example true true",
		"geyser:https://node.example?token=secret":                                      "*geyser.Source geyser:https://node.example:443 true false",
		"geyser:http://node.example:1?token=secret&rpc=http://node.example:2/secret":    "*source.filled geyser:http://node.example:1 true true",
	} {
		s, err := source.Open(spec, source.Options{Log: slog.New(slog.DiscardHandler)})
		ledgertest.Must(t, err)
		var info ledger.SourceInfo
		if s != nil {
			info = s.Info()
		}
		_, fetches := s.(ledger.Fetcher)
		ledgertest.Equal(t, fmt.Sprintf("%T %s %t %t", s, info.Name, info.Live, fetches), want, "%s", spec)
	}
}

// What cannot be opened is refused in one line that shows no secret. An entry of testdata/refused.txt is a specification, which may
// be quoted, and a part of the error.
func TestOpenRefusesWhatItCannotOpen(t *testing.T) {
	meant := strings.NewReplacer("[an empty folder]", t.TempDir(), "[s3cret, 1000 times]", strings.Repeat("s3cret", 1000))
	for _, lines := range datatest.Entries(t, "refused.txt") {
		spec, want := lines[0], strings.TrimSpace(strings.TrimPrefix(lines[1], ">"))
		if plain, err := strconv.Unquote(spec); err == nil {
			spec = plain
		}
		spec, want = meant.Replace(spec), meant.Replace(want)
		s, err := source.Open(spec, source.Options{Log: slog.New(slog.DiscardHandler)})
		ledgertest.ErrorSays(t, err, want, "%s", spec)
		isSafe := s == nil && !strings.Contains(fmt.Sprint(err), "s3cret") && !strings.Contains(fmt.Sprint(err), "\n")
		ledgertest.Holds(t, isSafe, "Open(%q) = %v, %v, want nil and one line without a secret", spec, s, err)
	}
}
