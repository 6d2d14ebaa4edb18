package file

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/ledger/ledgertest"
)

// recordings are the recorded files in the forms of a node, and the beginning of the hash of all their event lines. The lines were
// compared with a second reading of each file, from plain maps and with another base58, when they were pinned, but for what transactions failed
// with, which TestRecordedErrsAreKept compares.
var recordings = map[string]string{
	"blocks/devnet-270893658.json":                      "694dbd4ba9aee37d",
	"blocks/devnet-314167369.json":                      "9928128623bea5cb",
	"blocks/excerpt-mainnet-100000000.json":             "158020e88a90f23b",
	"blocks/excerpt-mainnet-100000000-jsonparsed.json":  "158020e88a90f23b",
	"blocks/excerpt-mainnet-154808473.json":             "bbad1a36578fcbd5",
	"blocks/excerpt-mainnet-child-of-1021084.json":      "2d808686893d043f",
	"blocks/mainnet-0-9.blocks.json":                    "892f43c1ddc58e32",
	"blocks/mainnet-10-19.blocks.json":                  "7a8dd8795020c726",
	"blocks/mainnet-254170887.json.gz":                  "dfc209a7502f806e",
	"rpc/http/Blocks/GetBlockResponse.json":             "a197cb0cde90c9ee",
	"accounts/mainnet-genesis.accounts.json":            "aebcebdcaa770d31",
	"accounts/account-updates.json":                     "e392d994cf79bc53",
	"accounts/vixen/*":                                  "93f20490d24b119f",
	"vectors/kit-accounts/*":                            "9b7a0e25fd1c773a",
	"rpc/http/Accounts/GetProgramAccountsResponse.json": "f5222377d30c33c3",
}

// Whatever a node answered is read as it was recorded, and its event lines are read back as the same.
func TestRecordingsAreReadAsRecorded(t *testing.T) {
	for pattern, want := range recordings {
		var lines []byte
		for _, path := range recorded(t, pattern) {
			for _, e := range events(t, path) {
				checkEventLine(t, e)
				checkStamps(t, e)
				lines = AppendEventLine(lines, e)
			}
		}
		ledgertest.Equal(t, fmt.Sprintf("%x", sha256.Sum256(lines))[:16], want, "%s: the hash of\n%s", pattern, lines)
	}
}

// TestRecordedAccountsTellTheirData compares the data of accounts with what another reader of the files finds, and of the event lines as well.
func TestRecordedAccountsTellTheirData(t *testing.T) {
	type at struct {
		slot ledger.Slot
		key  string
	}
	for _, path := range []string{"accounts/account-updates.json", "accounts/mainnet-genesis.accounts.json"} {
		path = datatest.Path(t, path)
		var oracle []struct {
			Pubkey  string
			Slot    ledger.Slot
			Account struct{ Data [2]string }
		}
		datatest.JSON(t, path, &oracle)
		want := make(map[at]string)
		for _, a := range oracle {
			want[at{a.Slot, a.Pubkey}] = a.Account.Data[0]
		}
		s, _ := open(t, path)
		s.HoldData(allData)
		read, err := run(s, nil)
		ledgertest.Must(t, err)
		got := make(map[at]string)
		for _, e := range read {
			line := AppendEventLine(nil, e)
			again, err := parse(line)
			ledgertest.Must(t, err)
			for _, e := range []ledger.Event{e, again} {
				base := e.(*ledger.BaseState)
				for i := range base.Accounts {
					w := &base.Accounts[i]
					if w.Known&ledger.FieldData == 0 {
						t.Errorf("%s: the data of %s is not known", path, w.Pubkey)
					}
					got[at{base.Slot, w.Pubkey.String()}] = base64.StdEncoding.EncodeToString(w.Data.Bytes())
				}
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: the data is not that of the oracle: %d accounts, want %d", path, len(got), len(want))
		}
	}
}

// What transactions failed with is kept as the node answered it.
func TestRecordedErrsAreKept(t *testing.T) {
	for _, path := range []string{"blocks/excerpt-mainnet-100000000.json", "blocks/mainnet-254170887.json.gz"} {
		var answer struct {
			Transactions []struct{ Meta struct{ Err any } }
		}
		path = datatest.Path(t, path)
		datatest.JSON(t, path, &answer)
		var want, got []string
		for _, tx := range answer.Transactions {
			text, _ := json.Marshal(tx.Meta.Err)
			want = append(want, strings.Replace(string(text), "null", "", 1))
		}
		for _, tx := range events(t, path)[0].(*ledger.Block).Transactions {
			got = append(got, tx.Err)
		}
		ledgertest.Equal(t, got, want, "%s: what its transactions failed with", path)
		ledgertest.Equal(t, strings.Join(got, "") != "", true, "%s: whether some failed", path)
	}
}

// checkStamps fails unless the transactions of a block say where they are, which lines leave to the block.
func checkStamps(t *testing.T, e ledger.Event) {
	if b, ok := e.(*ledger.Block); ok {
		for i, tx := range b.Transactions {
			if tx.Slot != b.Slot || tx.Time != b.Time || tx.Index != uint32(i) {
				t.Errorf("slot %d: transaction %d is stamped %d, %v, %d", b.Slot, i, tx.Slot, tx.Time, tx.Index)
			}
		}
	}
}

// An entry of testdata/answers.txt is the name of a recorded answer, and its event line.
func TestRecordedAnswersTakeTheirKeyFromTheNameOfTheFile(t *testing.T) {
	for _, lines := range datatest.Entries(t, "answers.txt") {
		content := datatest.Read(t, datatest.Path(t, "rpc/http/Accounts/"+lines[0]))
		path := write(t, "account-"+testKey(9)+".json", string(content))
		ledgertest.Equal(t, eventLinesOf(events(t, path)), strings.TrimPrefix(lines[1], "> ")+"\n", "%s", lines[0])
	}
}
