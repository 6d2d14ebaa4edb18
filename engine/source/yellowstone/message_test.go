package yellowstone

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
)

func key(n byte) ledger.Pubkey { return ledger.Pubkey{n, 0xff, n} }

// tokenData is a token account's data: a mint, a wallet, an amount, initialized.
func tokenData(mint, wallet ledger.Pubkey, amount byte) []byte {
	data := make([]byte, 165)
	copy(data, mint[:])
	copy(data[32:], wallet[:])
	data[64], data[108] = amount, 1
	return data
}

func TestMessagesAreRead(t *testing.T) {
	plain := ledger.AccountWrite{Pubkey: key(1), Lamports: 5, Owner: key(9), Executable: true, RentEpoch: 1<<64 - 1, Known: ledger.FieldsAll}
	token := ledger.AccountWrite{Pubkey: key(2), Lamports: 7, Owner: ledger.TokenProgram, Known: ledger.FieldsAll, Token: &ledger.TokenAccount{
		Mint: key(3), Owner: key(4), Amount: 6, Details: ledger.Some(ledger.TokenDetails{State: ledger.TokenInitialized}),
	}}
	head := Head{
		Hash: ledger.Hash{1}, ParentSlot: 8, ParentHash: ledger.Some(ledger.Hash{2}), Transactions: 4,
		Time: ledger.Some(int64(1770000000)), Height: ledger.Some(uint64(7)),
	}
	paid := ledger.Transaction{
		Signature: ledger.Signature{1}, Index: 3, Fee: ledger.Some(ledger.Lamports(5000)), Success: ledger.Some(true),
		Accounts: []ledger.Pubkey{key(1), key(2), key(3), key(4)},
	}
	failed := paid
	failed.Index, failed.Success = 0, ledger.Some(false)
	tests := map[string]struct {
		message wire
		want    Update
	}{
		"an account":        {accountMessage(9, plain, 12, []byte{1}, false), Update{Kind: Account, Slot: 9, Write: plain, WriteVersion: 12}},
		"a token account":   {accountMessage(9, token, 1, tokenData(key(3), key(4), 6), true), Update{Kind: Account, Slot: 9, Write: token, WriteVersion: 1, Startup: true}},
		"a closed account":  {accountMessage(9, ledger.AccountWrite{Pubkey: key(1)}, 3, nil, false), Update{Kind: Account, Slot: 9, Write: ledger.AccountWrite{Pubkey: key(1)}, WriteVersion: 3}},
		"processed":         {slotMessage(9, Processed), Update{Kind: Slot, Slot: 9}},
		"dead":              {slotMessage(9, Dead), Update{Kind: Slot, Slot: 9, Status: Dead}},
		"a head":            {headMessage(9, head), Update{Kind: Meta, Slot: 9, Head: head}},
		"a head of the old": {headMessage(9, Head{Hash: ledger.Hash{1}, ParentSlot: 8}), Update{Kind: Meta, Slot: 9, Head: Head{Hash: ledger.Hash{1}, ParentSlot: 8}}},
		"a transaction":     {transactionMessage(9, paid, 2), Update{Kind: Transaction, Slot: 9, Transaction: paid}},
		"a failed one":      {transactionMessage(9, failed, 0), Update{Kind: Transaction, Slot: 9, Transaction: failed}},
		"an entry":          {update(8, wire(nil).number(1, 9)), Update{}},
		"a ping":            {update(6, nil), Update{Kind: Ping}},
		"the last counts":   {append(headMessage(9, head), slotMessage(10, Dead)...), Update{Kind: Slot, Slot: 10, Status: Dead}},
		"nothing":           {nil, Update{}},
	}
	for name, tt := range tests {
		var got Update
		if err := Decode(tt.message, &got); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", name, err, got, tt.want)
		}
	}
}

func TestBadMessagesAreRefused(t *testing.T) {
	k := key(1)
	tests := map[string]struct {
		message wire
		want    string
	}{
		"cut in a length":          {wire{0x12, 0x7f, 1}, "cut short"},
		"a group":                  {wire{0x13}, "cut short"},
		"a tag without end":        {wire{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, "cut short"},
		"an account as a number":   {wire(nil).number(2, 1), "another type"},
		"no key":                   {update(2, wire(nil).bytes(1, wire(nil).number(2, 5)).number(2, 9)), "an account: its key has 0 bytes"},
		"a short key":              {update(2, wire(nil).bytes(1, wire(nil).bytes(1, k[:31]))), "an account: its key has 31 bytes"},
		"lamports as bytes":        {update(2, wire(nil).bytes(1, wire(nil).bytes(2, nil))), "an account: a field"},
		"a long hash":              {update(7, wire(nil).number(1, 9).bytes(2, []byte(strings.Repeat("1", 45)))), "a block's head: a hash is not base58"},
		"no hash":                  {update(7, wire(nil).number(1, 9)), "a block's head: it has no hash"},
		"its own parent":           {headMessage(9, Head{Hash: ledger.Hash{1}, ParentSlot: 9}), "block 9 names slot 9 as its parent"},
		"no signature":             {update(4, wire(nil).bytes(1, wire(nil).number(5, 1))), "a transaction: its signature has 0 bytes"},
		"an index beyond any":      {update(4, wire(nil).bytes(1, wire(nil).bytes(1, make([]byte, 64)).number(5, 1<<40))), "a transaction: its index is 1099511627776"},
		"a short loaded address":   {update(4, wire(nil).bytes(1, wire(nil).bytes(1, make([]byte, 64)).bytes(4, wire(nil).bytes(12, k[:5])))), "a key has 5 bytes"},
		"a signature of 63 bytes":  {update(4, wire(nil).bytes(1, wire(nil).bytes(1, make([]byte, 63)))), "63 bytes"},
		"a status that is no word": {update(3, wire(nil).bytes(3, []byte("dead"))), "a slot's status: a field"},
	}
	for name, tt := range tests {
		if err := Decode(tt.message, new(Update)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// FuzzDecode feeds what no server sends. Whatever it is, it is read or refused.
func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, m := range aBlock(r, 9, 6).messages() {
		f.Add([]byte(m))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		var u Update
		if err := Decode(message, &u); err != nil {
			return
		}
		a := NewAssembler(nil)
		a.Emit = discard
		_ = a.Take(t.Context(), &u)
	})
}
