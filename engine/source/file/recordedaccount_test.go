package file

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"ledgerd/engine/ledger/datatest"
)

// The pins are of event lines that were compared with the recorded files, read a second time, when they were made.
func TestRecordedAccountsAreReadAsRecorded(t *testing.T) {
	type counts struct{ accounts, tokens, mints int }
	for pattern, want := range map[string]struct {
		counts counts
		hash   string
	}{
		"accounts/mainnet-genesis.accounts.json":            {counts{431, 0, 0}, "aebcebdcaa770d31"},
		"accounts/account-updates.json":                     {counts{84, 13, 24}, "e392d994cf79bc53"},
		"accounts/vixen/*":                                  {counts{4, 0, 2}, "93f20490d24b119f"},
		"vectors/kit-accounts/*":                            {counts{18, 4, 9}, "9b7a0e25fd1c773a"},
		"rpc/http/Accounts/GetProgramAccountsResponse.json": {counts{2, 0, 0}, "f5222377d30c33c3"},
	} {
		var lines string
		var got counts
		for _, path := range recorded(t, pattern) {
			for _, state := range bases(t, path) {
				lines += string(AppendEventLine(nil, state))
				for _, w := range state.Accounts {
					got.accounts++
					if w.Token != nil {
						got.tokens++
					}
					if w.Mint != nil {
						got.mints++
					}
				}
			}
		}
		if hash := fmt.Sprintf("%x", sha256.Sum256([]byte(lines)))[:16]; hash != want.hash || got != want.counts {
			t.Errorf("%s: %+v, hash %s, want %+v of\n%s", pattern, got, hash, want, lines)
		}
	}
}

// An entry of testdata/answers.txt is the name of a recorded answer, and its event line.
func TestRecordedAnswersTakeTheirKeyFromTheNameOfTheFile(t *testing.T) {
	for _, lines := range datatest.Entries(t, "answers.txt") {
		content := datatest.Read(t, datatest.Path(t, "rpc/http/Accounts/"+lines[0]))
		path := write(t, "account-"+testKey(9)+".json", string(content))
		if got, want := eventLinesOf(events(t, path)), strings.TrimPrefix(lines[1], "> ")+"\n"; got != want {
			t.Errorf("%s:\n got %swant %s", lines[0], got, want)
		}
	}
}
