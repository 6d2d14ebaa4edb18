package file

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
)

// recordedBlocks are all recorded files with blocks in a form of a node. The hashes are of what a second reading of each file
// found, from plain maps and with another base58, when they were pinned.
var recordedBlocks = []struct {
	path                         string
	first                        ledger.Slot
	blocks, transactions, failed int
	hash                         string // the beginning of that of all texts
}{
	{"blocks/devnet-270893658.json", 270893658, 1, 57, -1, "425d669fc8353ddc"},
	{"blocks/devnet-314167369.json", 314167369, 1, 18, 0, "eb47c3b275e75d58"},
	{"blocks/excerpt-mainnet-100000000.json", 100000000, 1, 10, 2, "4f474ffc2ec2627d"},
	{"blocks/excerpt-mainnet-100000000-jsonparsed.json", 100000000, 1, 10, 2, "4f474ffc2ec2627d"},
	{"blocks/excerpt-mainnet-154808473.json", 154808473, 1, 1, -1, "b916847a228cead9"},
	{"blocks/excerpt-mainnet-child-of-1021084.json", 1021085, 1, 15, 0, "7796673a95f990ea"},
	{"blocks/mainnet-0-9.blocks.json", 0, 10, 34, 0, "dcd1ecf66d3b4d30"},
	{"blocks/mainnet-10-19.blocks.json", 10, 10, 41, 0, "aaa888a7f1cfcae2"},
	{"blocks/mainnet-254170887.json.gz", 254170887, 1, 602, 305, "a20bcb632127bc49"},
	{"rpc/http/Blocks/GetBlockResponse.json", 79662905, 1, 2, -1, "520243eebfc7ad21"},
}

func TestRecordedBlocksAreReadAsRecorded(t *testing.T) {
	for _, r := range recordedBlocks {
		t.Run(filepath.Base(r.path), func(t *testing.T) {
			path := datatest.Path(t, r.path)
			got := blocks(t, path)
			hash, shown := sha256.New(), ""
			transactions, failed := 0, 0
			for i, b := range got {
				shown = fmt.Sprintf("%+v\n", show(b))
				hash.Write([]byte(shown))
				if b.Slot < r.first+ledger.Slot(i) || b.Status != ledger.Finalized || b.TransactionCount != uint64(len(b.Transactions)) {
					t.Errorf("block %d is %s and counts %d transactions", b.Slot, b.Status, b.TransactionCount)
				}
				transactions += len(b.Transactions)
				for i, tx := range b.Transactions {
					if tx.Success == ledger.Some(false) {
						failed++
					}
					if tx.Slot != b.Slot || tx.Time != b.Time || tx.Index != uint32(i) {
						t.Errorf("slot %d: transaction %d is stamped %d, %v, %d", b.Slot, i, tx.Slot, tx.Time, tx.Index)
					}
				}
			}
			if len(got) != r.blocks || transactions != r.transactions || (r.failed >= 0 && failed != r.failed) {
				t.Errorf("%d blocks, %d transactions, %d failed; want %d, %d and %d",
					len(got), transactions, failed, r.blocks, r.transactions, r.failed)
			}
			if sum := fmt.Sprintf("%x", hash.Sum(nil))[:16]; sum != r.hash {
				t.Errorf("hash %s, want %s; the last block is %s", sum, r.hash, shown)
			}
		})
	}
}

// blockTexts is a block in texts, "" for what is not known.
type blockTexts struct {
	slot, parent, hash, previous, time, height string
	transactions                               []transactionTexts
	accounts                                   map[string]accountTexts // live ones after the block
	decimals                                   map[string]string       // by mint
}

type transactionTexts struct {
	signature, fee, success string
	accounts                []string
}

type accountTexts struct {
	lamports, owner string
	token           tokenTexts
}

type tokenTexts struct{ mint, owner, amount string }

// show returns what a block says.
func show(b *ledger.Block) blockTexts {
	o := blockTexts{
		slot: fmt.Sprint(b.Slot), parent: fmt.Sprint(b.ParentSlot), hash: b.Blockhash.String(),
		previous: optText(b.PreviousBlockhash), time: optText(b.Time), height: optText(b.Height),
		accounts: map[string]accountTexts{}, decimals: map[string]string{},
	}
	for _, tx := range b.Transactions {
		t := transactionTexts{signature: tx.Signature.String(), fee: optText(tx.Fee), success: optText(tx.Success)}
		for _, k := range tx.Accounts {
			t.accounts = append(t.accounts, k.String())
		}
		o.transactions = append(o.transactions, t)
	}
	for k, a := range state(b) {
		shown := accountTexts{lamports: fmt.Sprint(uint64(a.Lamports))}
		if a.Known&ledger.FieldOwner != 0 {
			shown.owner = a.Owner.String()
		}
		if t := a.Token; t != nil {
			shown.token = tokenTexts{t.Mint.String(), t.Owner.String(), fmt.Sprint(t.Amount)}
		}
		o.accounts[k.String()] = shown
	}
	for _, m := range b.Mints { // what should not be known, or not be there twice, stands behind the decimals
		o.decimals[m.Pubkey.String()] += fmt.Sprint(m.Mint.Decimals) + optText(m.Mint.Supply) + optText(m.Mint.Scaled)
	}
	return o
}

func optText[T any](o ledger.Opt[T]) string {
	if !o.Known {
		return ""
	}
	return fmt.Sprint(o.Value)
}

// However a node's answer is kept, the event is the same.
func TestResponsesOfANodeAreReadLikeTheirResults(t *testing.T) {
	path := datatest.Path(t, "blocks/devnet-314167369.json")
	want := blocks(t, path)
	result := string(datatest.Read(t, path))
	response := `{"jsonrpc":"2.0","result":` + result + `,"id":1}`
	for name, content := range map[string]string{
		"response":         response,
		"list of one":      "[" + response + "]",
		"reordered":        `{"id":7,"error":null,"result":` + result + `}`,
		"with white space": "\n\t " + response + "\n\n",
	} {
		if got := blocks(t, write(t, "314167369.json", content)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: differs from the bare result", name)
		}
	}
}
