package rpc

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/source/nodejson"
)

// What a recorded block shows is held against its JSON in package file; here an answer must come out as that block.
func TestRecordedAnswersGiveTheRecordedBlocks(t *testing.T) {
	for name, slot := range map[string]ledger.Slot{
		"mainnet-254170887.json.gz": 254170887, "devnet-270893658.json": 270893658, "devnet-314167369.json": 314167369,
		"excerpt-mainnet-100000000.json": 100000000,
	} {
		text := datatest.Read(t, datatest.Path(t, "blocks/"+name))
		var recorded nodejson.Block
		if err := json.Unmarshal(text, &recorded); err != nil {
			t.Fatal(err)
		}
		want, err := recorded.At(slot)
		if err != nil || len(want.Accounts) == 0 || len(want.Transactions) == 0 {
			t.Fatalf("%s: %+v, err = %v", name, want, err)
		}
		want.Status = ledger.Confirmed
		bubble.Test(t, func(t *testing.T) {
			n := startNode(t)
			n.add(want.ParentSlot, slot)
			c := n.config()
			c.From, c.Accounts = ledger.Some(slot), AccountsNone
			n.fault = func(w http.ResponseWriter, method string, _ []json.RawMessage) bool {
				if method == "getBlock" {
					fmt.Fprintf(w, `{"jsonrpc":"2.0","result":%s,"id":%d}`, text, n.calledLocked())
				}
				return method == "getBlock"
			}
			if got := follow(t, New(c), nil, untilSlot(slot)).blocks()[0]; !reflect.DeepEqual(got, want) {
				t.Errorf("%s: the block of slot %d with %d transactions and %d accounts is another one", name, got.Slot, len(got.Transactions), len(got.Accounts))
			}
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
