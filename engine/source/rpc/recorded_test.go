package rpc

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/source/nodejson"
)

// facts are what a block shows, read from its JSON in the plainest way.
type facts struct {
	Blockhash         string
	PreviousBlockhash string
	ParentSlot        ledger.Slot
	Rewards           []struct {
		Pubkey      string
		PostBalance uint64
	}
	Transactions []struct {
		Transaction json.RawMessage
		Meta        struct {
			Err               any
			Fee               uint64
			PostBalances      []uint64
			LoadedAddresses   struct{ Writable, Readonly []string }
			PostTokenBalances []struct {
				AccountIndex           int
				Mint, Owner, ProgramID string
				UITokenAmount          struct{ Amount string }
			}
		}
	}
}

// keys returns signature and accounts of a transaction in either encoding.
func keysOf(t *testing.T, text json.RawMessage) (signature string, keys []string) {
	var spelled struct {
		Signatures []string
		Message    struct{ AccountKeys []string }
	}
	if json.Unmarshal(text, &spelled) == nil {
		return spelled.Signatures[0], spelled.Message.AccountKeys
	}
	var pair []string
	if err := json.Unmarshal(text, &pair); err != nil {
		t.Fatal(err)
	}
	wire, err := base64.StdEncoding.DecodeString(pair[0])
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := codec.ParseTransaction(wire)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range parsed.StaticKeys {
		keys = append(keys, k.String())
	}
	return parsed.Signatures[0].String(), keys
}

func TestRecordedAnswersGiveTheRecordedBlocks(t *testing.T) {
	for name, slot := range map[string]ledger.Slot{
		"mainnet-254170887.json.gz": 254170887, "devnet-270893658.json": 270893658, "devnet-314167369.json": 314167369,
		"excerpt-mainnet-100000000.json": 100000000,
	} {
		text := datatest.Read(t, datatest.Path(t, "blocks/"+name))
		var want facts
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		bubble.Test(t, func(t *testing.T) {
			b := followed(t, slot, want.ParentSlot, text)
			compareBlock(t, name, b, &want)
		})
	}
}

func BenchmarkReadBlock(b *testing.B) {
	text := datatest.Read(b, datatest.Path(b, "blocks/"+"mainnet-254170887.json.gz"))
	answer := fmt.Appendf(nil, `{"jsonrpc":"2.0","result":%s,"id":1}`, text)
	b.SetBytes(int64(len(answer)))
	b.ReportAllocs()
	for b.Loop() {
		j, err := parse[nodejson.Block](answer, "getBlock", 1)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := j.At(254170887); err != nil {
			b.Fatal(err)
		}
	}
}

// followed returns the block that a source emits of an answer to getBlock.
func followed(t *testing.T, slot, parent ledger.Slot, text []byte) *ledger.Block {
	n := startNode(t)
	n.add(parent, slot)
	n.blocks[slot].parent = parent
	c := n.config()
	c.From = ledger.Some(slot)
	n.fault = func(w http.ResponseWriter, method string, _ []json.RawMessage) bool {
		if method != "getBlock" {
			return false
		}
		total := 0
		for _, calls := range n.calls {
			total += calls
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","result":%s,"id":%d}`, text, total)
		return true
	}
	return follow(t, New(c), nil, untilSlot(slot)).blocks()[0]
}

func compareBlock(t *testing.T, name string, b *ledger.Block, want *facts) {
	t.Helper()
	if b.Blockhash.String() != want.Blockhash || b.PreviousBlockhash.Value.String() != want.PreviousBlockhash || b.ParentSlot != want.ParentSlot {
		t.Errorf("%s: the head is %v, %v, %d", name, b.Blockhash, b.PreviousBlockhash.Value, b.ParentSlot)
	}
	if len(b.Transactions) != len(want.Transactions) {
		t.Fatalf("%s: %d transactions, want %d", name, len(b.Transactions), len(want.Transactions))
	}
	lamports, tokens := map[string]uint64{}, map[string]string{}
	for i, tx := range want.Transactions {
		signature, keys := keysOf(t, tx.Transaction)
		got := &b.Transactions[i]
		keys = append(append(keys, tx.Meta.LoadedAddresses.Writable...), tx.Meta.LoadedAddresses.Readonly...)
		if got.Signature.String() != signature || uint64(got.Fee.Value) != tx.Meta.Fee || got.Success.Value != (tx.Meta.Err == nil) || fmt.Sprint(got.Accounts) != fmt.Sprint(keys) {
			t.Errorf("%s: transaction %d is %+v", name, i, got)
		}
		for k, balance := range tx.Meta.PostBalances {
			lamports[keys[k]] = balance
		}
		for _, row := range tx.Meta.PostTokenBalances {
			if row.Owner == "" {
				continue // of the years that did not record it: it tells nothing of an account not known
			}
			tokens[keys[row.AccountIndex]] = row.Mint + " " + row.Owner + " " + row.UITokenAmount.Amount
		}
	}
	for _, r := range want.Rewards {
		lamports[r.Pubkey] = r.PostBalance
	}
	held := stateAfter([]ledger.Event{b})
	for key, want := range lamports {
		k, err := ledger.ParsePubkey(key)
		if err != nil {
			t.Fatal(err)
		}
		if a := held[k]; want == 0 && a != nil && a.Exists() || want != 0 && (a == nil || uint64(a.Lamports) != want) {
			t.Errorf("%s: account %s is %+v, want %d lamports", name, key, a, want)
		} else if token, ok := tokens[key]; ok && want != 0 {
			if a.Token == nil || fmt.Sprintf("%s %s %d", a.Token.Mint, a.Token.Owner, a.Token.Amount) != token {
				t.Errorf("%s: token account %s is %+v, want %s", name, key, a.Token, token)
			}
		}
	}
	if len(lamports) == 0 || len(held) != len(lamports) {
		t.Errorf("%s: %d accounts, want %d", name, len(held), len(lamports))
	}
}
