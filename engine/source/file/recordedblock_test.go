package file

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
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
				if b.Slot != r.slots[i] || want[i].slot != "" && want[i].slot != fmt.Sprint(b.Slot) {
					t.Errorf("block %d: slot %d, want %d (%q in the file)", i, b.Slot, r.slots[i], want[i].slot)
				}
				compareHeader(t, b, &want[i])
				compareTransactions(t, b, want[i].transactions)
				compareAccounts(t, b, want[i].accounts)
				compareMints(t, b, want[i].decimals)
				transactions += len(b.Transactions)
				for _, tx := range b.Transactions {
					if tx.Success.Known && !tx.Success.Value {
						failed++
					}
				}
			}
			if transactions != r.transactions || (r.failed >= 0 && failed != r.failed) {
				t.Errorf("%d transactions, %d failed; want %d and %d", transactions, failed, r.transactions, r.failed)
			}
		})
	}
}

func compareHeader(t *testing.T, b *ledger.Block, want *oracleBlock) {
	t.Helper()
	previous := want.previous
	if previous == "11111111111111111111111111111111" {
		previous = ""
	}
	type header struct {
		hash, previous, time, height string
		parent                       ledger.Slot
		status                       ledger.Commitment
		count                        uint64
	}
	got := header{b.Blockhash.String(), optText(b.PreviousBlockhash), optText(b.Time), optText(b.Height), b.ParentSlot, b.Status, b.TransactionCount}
	exp := header{want.hash, previous, want.time, want.height, ledger.Slot(want.parent), ledger.Finalized, uint64(len(want.transactions))}
	if got != exp {
		t.Errorf("slot %d: header %+v, want %+v", b.Slot, got, exp)
	}
}

func optText[T any](o ledger.Opt[T]) string {
	if !o.Known {
		return ""
	}
	return fmt.Sprint(o.Value)
}

func compareTransactions(t *testing.T, b *ledger.Block, want []oracleTransaction) {
	t.Helper()
	if len(b.Transactions) != len(want) {
		t.Fatalf("slot %d: %d transactions, want %d", b.Slot, len(b.Transactions), len(want))
	}
	for i, tx := range b.Transactions {
		got := oracleTransaction{signature: tx.Signature.String(), fee: optText(tx.Fee), failed: tx.Success.Known && !tx.Success.Value}
		for _, k := range tx.Accounts {
			got.accounts = append(got.accounts, k.String())
		}
		if !reflect.DeepEqual(got, want[i]) {
			t.Errorf("slot %d: transaction %d is %+v, want %+v", b.Slot, i, got, want[i])
		}
		if tx.Success.Known != (want[i].fee != "") {
			t.Errorf("slot %d: transaction %d: success known %v, want it known with the fee", b.Slot, i, tx.Success.Known)
		}
		if tx.Slot != b.Slot || tx.Time != b.Time || tx.Index != uint32(i) {
			t.Errorf("slot %d: transaction %d is stamped %d, %v, %d", b.Slot, i, tx.Slot, tx.Time, tx.Index)
		}
	}
}

func compareAccounts(t *testing.T, b *ledger.Block, want map[string]*oracleAccount) {
	t.Helper()
	got := state(b)
	if len(got) != len(want) {
		t.Errorf("slot %d: %d live accounts, want %d", b.Slot, len(got), len(want))
	}
	for k, a := range got {
		w := want[k.String()]
		if w == nil {
			t.Errorf("slot %d: %s is not touched in the recording", b.Slot, k)
			continue
		}
		have := oracleAccount{lamports: strconv.FormatUint(uint64(a.Lamports), 10)}
		if a.Known&ledger.FieldOwner != 0 {
			have.owner = a.Owner.String()
		}
		if a.Token != nil {
			have.token = &oracleToken{a.Token.Mint.String(), a.Token.Owner.String(), strconv.FormatUint(a.Token.Amount, 10)}
		}
		if !reflect.DeepEqual(&have, w) {
			t.Errorf("slot %d: %s is %+v %+v, want %+v %+v", b.Slot, k, have, have.token, w, w.token)
		}
	}
}

func compareMints(t *testing.T, b *ledger.Block, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for _, m := range b.Mints {
		got[m.Pubkey.String()] = fmt.Sprint(m.Mint.Decimals)
		if m.Mint.Scaled.Known || m.Mint.Supply.Known {
			t.Errorf("slot %d: mint %s knows supply or scaling", b.Slot, m.Pubkey)
		}
	}
	if len(b.Mints) != len(want) || !reflect.DeepEqual(got, want) {
		t.Errorf("slot %d: %d mints %v, want %v", b.Slot, len(b.Mints), got, want)
	}
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
	result, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	response := `{"jsonrpc":"2.0","result":` + string(result) + `,"id":1}`
	for name, content := range map[string]string{
		"response":         response,
		"list of one":      "[" + response + "]",
		"reordered":        `{"id":7,"error":null,"result":` + string(result) + `}`,
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
