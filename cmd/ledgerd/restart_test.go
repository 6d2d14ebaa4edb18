package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
	clientlib "ledgerd/httpd/client"
)

// ending returns what a node logged about the end of its input, without the time.
func (r *running) ending(t testing.TB) string {
	t.Helper()
	return r.errs.await(t, endOfInput.String())[1]
}

// everything returns the answers of a node to many questions, headers that tell no time
// included.
func everything(a *api) string {
	a.Helper()
	var b strings.Builder
	ask := func(path string) answer {
		r := a.get(path)
		fmt.Fprintf(&b, "%s\n%d %s %s %s\n%s\n", path, r.status, r.header.Get("X-Ledger-Slot"), r.header.Get("X-Ledger-Partial"), r.header.Get("ETag"), r.body)
		return r
	}
	for _, level := range levels {
		ask("/blocks/latest?commitment=" + level)
		ask("/transactions/recent?limit=300&commitment=" + level)
		for _, program := range simPrograms {
			ask("/accounts/program/" + program + "?limit=10000&commitment=" + level)
		}
	}
	owners := decode[clientlib.ProgramAccounts](a, ask("/accounts/program/"+systemProgram+"?limit=10"))
	for _, owner := range owners.Accounts {
		ask("/account/" + owner.Pubkey + "/tokens")
		ask("/account/" + owner.Pubkey + "/balance")
	}
	for slot := range 62 {
		ask(fmt.Sprintf("/blocks/%d", slot))
	}
	return b.String()
}

const (
	systemProgram = "11111111111111111111111111111111"
	tokenProgram  = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"
)

var levels = []string{"processed", "confirmed", "finalized"}

// simPrograms own all accounts of the simulator.
var simPrograms = []string{
	systemProgram, tokenProgram, "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb", "Vote111111111111111111111111111111111111111",
}

// A ledger with forks, skipped slots and blocks that are not final is the same when it is read again, by another node, over more shards,
// and from an export.
func TestSameSourceGivesTheSameLedger(t *testing.T) {
	t.Parallel()
	const simulated = "sim:seed=5,accounts=150,slot_time=0,tps=50,fork_rate=0.25,skip_rate=0.2,finality=12,slots=60"
	dir, folder := t.TempDir(), t.TempDir()
	wantEnding, want := "", ""
	for _, tt := range []struct{ name, dir, source, shards string }{
		{"first", dir, simulated, "1"},
		{"again in the same directory", dir, simulated, "1"},
		{"in another one, over more shards", t.TempDir(), simulated, "5"},
		{"ndjson", t.TempDir(), "file:" + folder + "/ndjson", "3"},
		{"binary", t.TempDir(), "file:" + folder + "/binary", "3"},
	} {
		if tt.source != simulated {
			path := filepath.Join(folder, tt.name)
			must(t, os.WriteFile(path, []byte("an older export"), 0o600))
			printed := toolSays(t, exitOK, "", "export", "--data-dir", dir, "--format", tt.name, "--output", path, "--force")
			ledgertest.Equal(t, printed, "", "%s: what export prints", tt.name)
		}
		r := start(t, "--data-dir", tt.dir, "--source", tt.source, "--shards", tt.shards)
		ending := r.ending(t)
		if tt.source != simulated { // whose numbers begin with the export
			ending = stateHashField.FindString(ending)
		}
		// Nobody knows of a file whether it shows all accounts of its ledger.
		got := someAccounts.ReplaceAllString(everything(dial(t, r)), "$1")
		r.stop()
		if want == "" {
			wantEnding, want = ending, got
			if regexp.MustCompile(`slot=0 |seq=0 |state_hash=0+$`).MatchString(ending) {
				t.Errorf("the input ended at %s", ending)
			}
		}
		if !strings.HasSuffix(wantEnding, ending) {
			t.Errorf("%s: ended at %s, want %s", tt.name, ending, wantEnding)
		}
		if got != want {
			t.Errorf("%s: other answers:\n%s", tt.name, firstDifference(got, want))
		}
	}
}

// someAccounts are the lines of everything about a list that may lack accounts.
var someAccounts = regexp.MustCompile(`(?m)^(200 \d+ )accounts`)

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("line %d: got %s", i, shorten(a[i]))
		}
	}
	return "some are missing"
}
