package main

import (
	"path/filepath"
	"regexp"
	"testing"
)

// What a node holds, with forks, skipped slots and blocks that are not final, is exported and
// read by another one: it has the same state and answers the same.
func TestExportedLedgerAnswersTheSame(t *testing.T) {
	dir := t.TempDir()
	const simulated = "sim:seed=5,accounts=150,slot_time=0,tps=50,fork_rate=0.25,skip_rate=0.2,finality=12,slots=60"
	r := start(t, "--data-dir", dir, "--source", simulated)
	stateHash := regexp.MustCompile(`state_hash=\S+`)
	wantHash := stateHash.FindString(r.ending(t))
	want := everything(dial(t, r))
	r.stop()
	for _, format := range []string{"ndjson", "binary"} {
		path := filepath.Join(t.TempDir(), "export")
		out, errors, code := tool(t, "export", "--data-dir", dir, "--format", format, "--output", path)
		if code != exitOK || out != "" || !regexp.MustCompile(`^exported \d+ accounts, \d+ mints and \d+ blocks up to slot \d+\n$`).MatchString(errors) {
			t.Fatalf("%s: exit %d, %s, %s", format, code, out, errors)
		}
		r := start(t, "--data-dir", t.TempDir(), "--source", "file:"+path, "--shards", "3")
		if got := stateHash.FindString(r.ending(t)); got != wantHash {
			t.Errorf("%s: %s, want %s", format, got, wantHash)
		}
		// Nobody knows of a file whether it shows all accounts of its ledger.
		if got := someAccounts.ReplaceAllString(everything(dial(t, r)), "$1"); got != want {
			t.Errorf("%s: other answers:\n%s", format, firstDifference(got, want))
		}
		r.stop()
	}
}

// someAccounts are the lines of everything about a list that may lack accounts.
var someAccounts = regexp.MustCompile(`(?m)^(200 \d+ )accounts`)
