package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/file"
)

// filteredInput writes a ledger of few accounts: of one program, of another, and one that moves
// from the first to the second; with a vote in it.
func filteredInput(t *testing.T, of ledger.Pubkey) string {
	t.Helper()
	write := func(name string, lamports ledger.Lamports, owner ledger.Pubkey) ledger.AccountWrite {
		return ledger.AccountWrite{Pubkey: toolKey(name), Lamports: lamports, Owner: owner, Known: ledger.FieldsAll}
	}
	one := &ledger.Block{Slot: 11, ParentSlot: 10, Blockhash: toolHash(11), Accounts: []ledger.AccountWrite{
		write("wanted", 2, of), write("other", 2, toolKey("elsewhere")), write("moves", 2, of), write("listed", 2, toolKey("elsewhere")),
		{Pubkey: toolKey("partial"), Lamports: 7},
	}}
	one.AddTransaction(ledger.Transaction{Signature: ledger.Signature{1}, Accounts: []ledger.Pubkey{toolKey("a"), toolKey("b"), ledger.VoteProgram}})
	one.AddTransaction(ledger.Transaction{Signature: ledger.Signature{2}, Accounts: []ledger.Pubkey{toolKey("a"), toolKey("b"), ledger.SystemProgram}})
	one.TransactionCount = 2
	two := &ledger.Block{Slot: 12, ParentSlot: 11, Blockhash: toolHash(12), PreviousBlockhash: ledger.Some(toolHash(11)), Accounts: []ledger.AccountWrite{
		write("moves", 3, toolKey("elsewhere")), write("other", 3, toolKey("elsewhere")),
	}}
	var lines []byte
	for _, b := range []*ledger.Block{one, two} {
		lines = append(lines, file.AppendEventLine(nil, b)...)
	}
	path := filepath.Join(t.TempDir(), "ledger")
	if err := os.WriteFile(path, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNodeHoldsWhatItsFiltersWant(t *testing.T) {
	program := toolKey("program")
	input, dir := filteredInput(t, program), t.TempDir()
	flags := []string{"--data-dir", dir, "--index-owners", program.String(), "--index-accounts", toolKey("listed").String()}
	for _, source := range []string{"file:" + input, "none"} {
		args := append([]string{"--source", source, "--skip-votes"}, flags...)
		if source == "none" {
			args = []string{"--data-dir", dir, "--source", source}
		}
		r := start(t, args...)
		if source != "none" {
			r.ending(t)
		}
		for name, want := range map[string]int{"wanted": 2, "moves": 3, "listed": 2, "other": 0, "partial": 0, "nobody": 0} {
			status, body := get(t, r.base+"/account/"+toolKey(name).String())
			switch {
			case want == 0 && (status != http.StatusNotFound || !strings.Contains(string(body), `"details":"account not indexed`)):
				t.Errorf("%s: account %s: %d %s, want not indexed", source, name, status, body)
			case want > 0 && (status != http.StatusOK || !strings.Contains(string(body), fmt.Sprintf(`"lamports":%d,`, want))):
				t.Errorf("%s: account %s: %d %s, want %d lamports", source, name, status, body, want)
			}
		}
		for owner, partial := range map[string]string{"program": "accounts", "elsewhere": "accounts"} { // of the program the file need not show all
			answer, err := http.Get(r.base + "/accounts/program/" + toolKey(owner).String())
			if err != nil {
				t.Fatal(err)
			}
			var list struct{ Accounts []json.RawMessage }
			if err := json.NewDecoder(answer.Body).Decode(&list); err != nil {
				t.Error(err)
			}
			answer.Body.Close()
			members := map[string]int{"program": 1, "elsewhere": 2}[owner]
			if got := answer.Header.Get("X-Ledger-Partial"); got != partial || len(list.Accounts) != members {
				t.Errorf("%s: accounts of %s: %d, X-Ledger-Partial %q, want %d and %q", source, owner, len(list.Accounts), got, members, partial)
			}
		}
		_, block := get(t, r.base+"/blocks/11?include=signatures")
		if !strings.Contains(string(block), `"transactions":2`) || !strings.Contains(string(block), `"signatures":["`+ledger.Signature{2}.String()+`"]`) {
			t.Errorf("%s: block %s, want the count of the source, and no vote", source, block)
		}
		vote, body := get(t, r.base+"/transaction/"+ledger.Signature{1}.String())
		if vote != http.StatusNotFound || !strings.Contains(string(body), "or a vote: votes are not indexed here") {
			t.Errorf("%s: a vote: %d %s", source, vote, body)
		}
		r.stop()
	}
	for name, other := range map[string][]string{
		"none":    {"--source", "file:" + input},
		"another": {"--source", "file:" + input, "--index-owners", toolKey("elsewhere").String()},
		"asked":   {"--source", "none", "--index-accounts", toolKey("listed").String()},
	} {
		args := append([]string{"serve", "--listen", "127.0.0.1:0", "--ops-listen", "", "--data-dir", dir}, other...)
		_, errors, code := tool(t, args...)
		if code != exitFailure || !strings.Contains(errors, "was begun with --index-owners "+program.String()) || strings.Count(errors, "\n") != 1 {
			t.Errorf("%s: exit %d, %s", name, code, errors)
		}
	}
}

// TestVotesStayLeftOut: a directory of which some blocks have votes and some have none would answer by chance.
func TestVotesStayLeftOut(t *testing.T) {
	input := filteredInput(t, toolKey("program"))
	serve := func(dir string, flags ...string) (string, int) {
		args := append([]string{"serve", "--listen", "127.0.0.1:0", "--ops-listen", "", "--data-dir", dir}, flags...)
		_, errors, code := tool(t, args...)
		return errors, code
	}
	with, without := t.TempDir(), t.TempDir()
	for dir, flags := range map[string][]string{with: {"--skip-votes"}, without: nil} {
		for range 2 { // what was given before is taken again
			r := start(t, append([]string{"--data-dir", dir, "--source", "file:" + input}, flags...)...)
			r.ending(t)
			r.stop()
		}
	}
	start(t, "--data-dir", with, "--source", "none").stop()
	start(t, "--data-dir", with, "--source", "none", "--skip-votes").stop()
	for name, tt := range map[string]struct {
		dir   string
		flags []string
		want  string
	}{
		"left out":         {with, []string{"--source", "file:" + input}, "was begun with --skip-votes"},
		"given later":      {without, []string{"--source", "file:" + input, "--skip-votes"}, "was begun without --skip-votes"},
		"given to nothing": {without, []string{"--source", "none", "--skip-votes"}, "was begun without --skip-votes"},
	} {
		if errors, code := serve(tt.dir, tt.flags...); code != exitFailure || !strings.Contains(errors, tt.want) || strings.Count(errors, "\n") != 1 {
			t.Errorf("%s: exit %d, %s", name, code, errors)
		}
	}
	r := start(t, "--data-dir", without, "--source", "none")
	if _, body := get(t, r.base+"/transaction/"+ledger.Signature{3}.String()); strings.Contains(string(body), "votes") {
		t.Errorf("a transaction that is not held, of a node that holds votes: %s", body)
	}
	r.stop()
}

// What a filtered node exports is read, without filters, as what it held.
func TestExportOfSomeAccounts(t *testing.T) {
	program := toolKey("program")
	dir := t.TempDir()
	r := start(t, "--data-dir", dir, "--source", "file:"+filteredInput(t, program), "--index-owners", program.String())
	want := stateHashField.FindString(r.ending(t))
	r.stop()
	path := filepath.Join(t.TempDir(), "export")
	if _, errors, code := tool(t, "export", "--data-dir", dir, "--output", path); code != exitOK {
		t.Fatalf("export: exit %d, %s", code, errors)
	}
	content, err := os.ReadFile(path)
	if err != nil || bytes.Contains(content, []byte(toolKey("other").String())) {
		t.Errorf("the export names an account that is not held, or %v", err)
	}
	again := start(t, "--data-dir", t.TempDir(), "--source", "file:"+path)
	if got := stateHashField.FindString(again.ending(t)); got != want {
		t.Errorf("state %s, want %s", got, want)
	}
	again.stop()
}
