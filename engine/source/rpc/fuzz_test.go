package rpc

import (
	"bytes"
	"encoding/json"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/nodejson"
)

// Whatever a node answers, the result is a block that is whole, or one line that quotes nothing.
func FuzzBlockAnswer(f *testing.F) {
	n := &fakeBlock{slot: 7, parent: 6, hash: hashOf("7"), previous: hashOf("6"), fields: `,"transactions":[{"transaction":{"signatures":["1"],"message":{"accountKeys":["a"]}},"meta":{"err":null,"fee":1,"postBalances":[5]}}],"rewards":[]`}
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":` + n.json() + `}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":null}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32007}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		j, err := parse[nodejson.Block](text, "getBlock", 1)
		checkText(t, err)
		if j == nil {
			return
		}
		b, err := j.At(7)
		checkText(t, err)
		if err == nil && (b.Slot != 7 || len(b.Transactions) > len(text)) {
			t.Errorf("got %+v", b)
		}
	})
}

func FuzzAccountsAnswer(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"context":{"slot":5},"value":[null,{"lamports":1,"owner":"11111111111111111111111111111111","executable":false,"rentEpoch":0,"space":2,"data":["AAA=","base64"]}]}}`), false)
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"context":{"slot":5},"value":[{"lamports":1,"owner":"TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb","space":200,"data":["","base64"]},{"data":"","lamports":0}]}}`), true)
	keys := []ledger.Pubkey{keyOf(1), keyOf(2)}
	f.Fuzz(func(t *testing.T, text []byte, whole bool) {
		list, err := parse[accountList](text, "getMultipleAccounts", 1)
		checkText(t, err)
		if list == nil {
			return
		}
		_, parts, err := readAccounts(list, keys, whole)
		checkText(t, err)
		if err == nil && len(parts) != len(keys) {
			t.Errorf("%d accounts for %d keys", len(parts), len(keys))
		}
		for i := range parts {
			if p := &parts[i]; p.cut && (whole || len(p.data) < headBytes) {
				t.Errorf("%d bytes of data are cut", len(p.data))
			}
			if w := &parts[i].write; w.Lamports != 0 && w.Known&ledger.FieldOwner == 0 {
				t.Errorf("an account without an owner: %+v", w)
			}
		}
	})
}

// checkText fails if an error is more than a line of ours.
func checkText(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if text := err.Error(); len(text) > 200 || bytes.ContainsAny([]byte(text), "\n\"") || !json.Valid([]byte(`"`+text+`"`)) {
		t.Errorf("the error is %q", text)
	}
}
