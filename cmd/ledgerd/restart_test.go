package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// ending returns what a node logged about the end of its input, without the time.
func (r *running) ending(t testing.TB) string {
	t.Helper()
	return r.errs.await(t, `msg="end of input" source=\S+ (slot=\d+ seq=\d+ state_hash=\S+)`)[1]
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
	owners := decode[programList](a, ask("/accounts/program/"+systemProgram+"?limit=10"))
	for _, owner := range owners.Accounts {
		ask("/account/" + owner.Pubkey + "/tokens")
		ask("/account/" + owner.Pubkey + "/balance")
	}
	for slot := range 62 {
		ask(fmt.Sprintf("/blocks/%d", slot))
	}
	return b.String()
}

// simPrograms own all accounts of the simulator.
var simPrograms = []string{
	systemProgram, tokenProgram, "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb", "Vote111111111111111111111111111111111111111",
}

func TestSameSourceGivesTheSameLedger(t *testing.T) {
	const simulated = "sim:seed=5,accounts=150,slot_time=0,tps=50,fork_rate=0.25,skip_rate=0.2,slots=60"
	dir := t.TempDir()
	tests := []struct {
		name, dir, shards string
	}{
		{"first", dir, "1"},
		{"again in the same directory", dir, "1"},
		{"in another one, over more shards", t.TempDir(), "5"},
	}
	wantEnding, want := "", ""
	for _, tt := range tests {
		r := start(t, "--data-dir", tt.dir, "--source", simulated, "--shards", tt.shards)
		ending := r.ending(t)
		got := everything(dial(t, r))
		r.stop()
		if want == "" {
			wantEnding, want = ending, got
			if regexp.MustCompile(`slot=0 |seq=0 |state_hash=0+$`).MatchString(ending) {
				t.Errorf("the input ended at %s", ending)
			}
			continue
		}
		if ending != wantEnding {
			t.Errorf("%s: ended at %s, want %s", tt.name, ending, wantEnding)
		}
		if got != want {
			t.Errorf("%s: other answers:\n%s", tt.name, firstDifference(got, want))
		}
	}
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("line %d: got %s", i, shorten(a[i]))
		}
	}
	return "some are missing"
}
