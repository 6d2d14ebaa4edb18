package file

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
)

// recordedBlocks are all recorded files with blocks in a form of a node.
var recordedBlocks = []struct {
	path         string
	slots        []ledger.Slot
	transactions int
	failed       int
}{
	{"blocks/devnet-270893658.json", slotsFrom(270893658, 1), 57, -1},
	{"blocks/devnet-314167369.json", slotsFrom(314167369, 1), 18, 0},
	{"blocks/excerpt-mainnet-100000000.json", slotsFrom(100000000, 1), 10, 2},
	{"blocks/excerpt-mainnet-100000000-jsonparsed.json", slotsFrom(100000000, 1), 10, 2},
	{"blocks/excerpt-mainnet-154808473.json", slotsFrom(154808473, 1), 1, -1},
	{"blocks/excerpt-mainnet-child-of-1021084.json", slotsFrom(1021085, 1), 15, 0},
	{"blocks/mainnet-0-9.blocks.json", slotsFrom(0, 10), 34, 0},
	{"blocks/mainnet-10-19.blocks.json", slotsFrom(10, 10), 41, 0},
	{"blocks/mainnet-254170887.json.gz", slotsFrom(254170887, 1), 602, 305},
	{"rpc/http/Blocks/GetBlockResponse.json", slotsFrom(79662905, 1), 2, -1},
}

func slotsFrom(first ledger.Slot, n int) (slots []ledger.Slot) {
	for i := range n {
		slots = append(slots, first+ledger.Slot(i))
	}
	return slots
}

func TestRecordedBlocksAreReadAsRecorded(t *testing.T) {
	for _, r := range recordedBlocks {
		t.Run(filepath.Base(r.path), func(t *testing.T) {
			path := datatest.Path(t, r.path)
			want := oracleBlocks(t, path)
			got := blocks(t, path)
			if len(got) != len(want) || len(got) != len(r.slots) {
				t.Fatalf("got %d blocks, want %d and %d", len(got), len(want), len(r.slots))
			}
			transactions, failed := 0, 0
			for i, b := range got {
				want[i].slot = cmp.Or(want[i].slot, fmt.Sprint(r.slots[i]))
				if shown := show(b); !reflect.DeepEqual(shown, want[i]) {
					t.Errorf("got %+v\nwant %+v", shown, want[i])
				}
				if b.Status != ledger.Finalized || b.TransactionCount != uint64(len(b.Transactions)) {
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
			if transactions != r.transactions || (r.failed >= 0 && failed != r.failed) {
				t.Errorf("%d transactions, %d failed; want %d and %d", transactions, failed, r.transactions, r.failed)
			}
		})
	}
}

// show returns a block as the oracle shows it.
func show(b *ledger.Block) oracleBlock {
	o := oracleBlock{
		slot: fmt.Sprint(b.Slot), parent: fmt.Sprint(b.ParentSlot), hash: b.Blockhash.String(),
		previous: optText(b.PreviousBlockhash), time: optText(b.Time), height: optText(b.Height),
		accounts: map[string]oracleAccount{}, decimals: map[string]string{},
	}
	for _, tx := range b.Transactions {
		t := oracleTransaction{signature: tx.Signature.String(), fee: optText(tx.Fee), success: optText(tx.Success)}
		for _, k := range tx.Accounts {
			t.accounts = append(t.accounts, k.String())
		}
		o.transactions = append(o.transactions, t)
	}
	for k, a := range state(b) {
		shown := oracleAccount{lamports: fmt.Sprint(uint64(a.Lamports))}
		if a.Known&ledger.FieldOwner != 0 {
			shown.owner = a.Owner.String()
		}
		if t := a.Token; t != nil {
			shown.token = oracleToken{t.Mint.String(), t.Owner.String(), fmt.Sprint(t.Amount)}
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

func TestEncodingsOfOneBlockAreTheSameEvent(t *testing.T) {
	raw := blocks(t, datatest.Path(t, "blocks/excerpt-mainnet-100000000.json"))
	parsed := blocks(t, datatest.Path(t, "blocks/excerpt-mainnet-100000000-jsonparsed.json"))
	if !reflect.DeepEqual(raw, parsed) {
		t.Errorf("json and jsonParsed differ:\n%+v\n%+v", raw[0], parsed[0])
	}
}

func TestEncodingBase58IsRead(t *testing.T) {
	path := datatest.Path(t, "blocks/devnet-314167369.json")
	want := blocks(t, path)
	got := blocks(t, write(t, "314167369.json", recodeBase58(t, path)))
	if !reflect.DeepEqual(got, want) {
		t.Error("base58 and base64 differ")
	}
}

// A list of one file's blocks, as response after response, is the same as the file.
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

func TestSingleTransactionsAreNoBlocks(t *testing.T) {
	for _, dir := range []string{"rpc/getTransaction", "rpc/getTransaction-base64"} {
		entries, err := os.ReadDir(datatest.Path(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			path := datatest.Path(t, filepath.Join(dir, e.Name()))
			s, _ := open(t, path)
			got, err := run(s, nil)
			want := "cannot read " + path + ": a single transaction, which is neither a block nor an account"
			if len(got) != 0 || err == nil || err.Error() != want {
				t.Errorf("%s: %d events, err = %v, want none and %q", e.Name(), len(got), err, want)
			}
		}
	}
}
