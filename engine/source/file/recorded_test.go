package file

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/ledger/ledgertest"
)

// recordings are the recorded files in the forms of a node, and the beginning of the hash of all their event lines. The lines were
// compared with a second reading of each file, from plain maps and with another base58, when they were pinned, and so were
// the data of the accounts that tell it whole and what transactions failed with.
var recordings = map[string]string{
	"blocks/devnet-270893658.json":                      "039af76166b3deed",
	"blocks/devnet-314167369.json":                      "23750cb00638c411",
	"blocks/excerpt-mainnet-100000000.json":             "a5bef72bb7b93c55",
	"blocks/excerpt-mainnet-100000000-jsonparsed.json":  "a5bef72bb7b93c55",
	"blocks/excerpt-mainnet-154808473.json":             "6b13af4ab90d7826",
	"blocks/excerpt-mainnet-child-of-1021084.json":      "2d808686893d043f",
	"blocks/mainnet-0-9.blocks.json":                    "892f43c1ddc58e32",
	"blocks/mainnet-10-19.blocks.json":                  "7a8dd8795020c726",
	"blocks/mainnet-254170887.json.gz":                  "5bafaf5920b44478",
	"rpc/http/Blocks/GetBlockResponse.json":             "cc31d268c9b427bb",
	"accounts/mainnet-genesis.accounts.json":            "19d298f7e39374c0",
	"accounts/account-updates.json":                     "e39a02e397e8cb23",
	"accounts/vixen/*":                                  "057eae6858cd6d8b",
	"vectors/kit-accounts/*":                            "3cbe7a9f4227054c",
	"rpc/http/Accounts/GetProgramAccountsResponse.json": "a0bdc862ac20b395",
}

// Whatever a node answered is read as it was recorded, and its event lines are read back as the same.
func TestRecordingsAreReadAsRecorded(t *testing.T) {
	for pattern, want := range recordings {
		var lines []byte
		for _, path := range recorded(t, pattern) {
			s, _ := open(t, path)
			s.HoldData(allData)
			list, err := run(s, nil)
			must(t, err)
			for _, e := range list {
				checkEventLine(t, e)
				checkStamps(t, e)
				lines = AppendEventLine(lines, e)
			}
		}
		ledgertest.Equal(t, fmt.Sprintf("%x", sha256.Sum256(lines))[:16], want, "%s: the hash of\n%s", pattern, lines)
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
