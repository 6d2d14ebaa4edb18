package file

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
)

func TestEventLines(t *testing.T) {
	k1, k2, sig := testKey(1), testKey(2), testSignature(3)
	key1, key2 := mustKey(k1), mustKey(k2)
	hash := ledger.Hash(mustKey(testKey(4)))
	signature, err := ledger.ParseSignature(sig)
	if err != nil {
		t.Fatal(err)
	}
	stamped := &ledger.Block{Slot: 9, ParentSlot: 7, Blockhash: hash, PreviousBlockhash: ledger.Some(ledger.Hash(key1)),
		Time: ledger.Some(int64(-5)), Height: ledger.Some(uint64(1<<64 - 1)), TransactionCount: 2,
		Accounts: []ledger.AccountWrite{
			{Pubkey: key1, Lamports: 1<<64 - 1, Owner: key2, RentEpoch: 1<<64 - 1, Executable: true, Known: ledger.FieldsShown},
			{Pubkey: key2},
		}}
	stamped.AddTransaction(ledger.Transaction{Signature: signature, Success: ledger.Some(true), Fee: ledger.Some(ledger.Lamports(5000)), Accounts: []ledger.Pubkey{key2, key1}})
	stamped.AddTransaction(ledger.Transaction{Signature: signature, Accounts: []ledger.Pubkey{}})
	bare := &ledger.Block{Blockhash: hash, Transactions: []ledger.Transaction{}, Accounts: []ledger.AccountWrite{}}

	tests := map[string]struct {
		line string
		want ledger.Event
	}{
		"a whole block": {fmt.Sprintf(`{"type":"block","slot":9,"parent_slot":7,"blockhash":%q,"previous_blockhash":%q,"block_time":-5,"block_height":18446744073709551615,
			"transactions":[{"signature":%q,"success":true,"fee":5000,"accounts":[%q,%q]},{"signature":%q,"success":null,"fee":null}],
			"accounts":[{"pubkey":%q,"lamports":18446744073709551615,"owner":%q,"executable":true,"rent_epoch":18446744073709551615},{"pubkey":%q,"lamports":0}]}`,
			hash, k1, sig, k2, k1, sig, k1, k2, k2), stamped},
		"a bare block":           {fmt.Sprintf(`{"type":"block","slot":0,"parent_slot":0,"blockhash":%q}`, hash), bare},
		"nulls":                  {fmt.Sprintf(`{"block_time":null,"block_height":null,"previous_blockhash":null,"transactions":null,"accounts":null,"blockhash":%q,"parent_slot":0,"slot":0,"type":"block"}`, hash), bare},
		"unknown previous hash":  {fmt.Sprintf(`{"type":"block","slot":0,"parent_slot":0,"blockhash":%q,"previous_blockhash":"11111111111111111111111111111111"}`, hash), bare},
		"fields of tomorrow":     {fmt.Sprintf(`{"type":"block","colour":{"a":[1]},"slot":0,"parent_slot":0,"blockhash":%q}`, hash), bare},
		"status":                 {`{"type":"slot","slot":5,"status":"dead"}`, &ledger.SlotStatus{Slot: 5, Status: ledger.StatusDead}},
		"status of a block":      {fmt.Sprintf(`{"type":"slot","slot":5,"status":"confirmed","blockhash":%q}`, hash), &ledger.SlotStatus{Slot: 5, Status: ledger.StatusConfirmed, Blockhash: ledger.Some(hash)}},
		"finalized":              {`{"status":"finalized","slot":18446744073709551615,"type":"slot"}`, &ledger.SlotStatus{Slot: 1<<64 - 1, Status: ledger.StatusFinalized}},
		"base state, none in it": {`{"type":"accounts","slot":5,"accounts":[]}`, &ledger.BaseState{Slot: 5, Accounts: []ledger.AccountWrite{}}},
	}
	for name, tt := range tests {
		line := strings.ReplaceAll(tt.line, "\n", " ")
		got := events(t, write(t, "a", "\n"+line+"\r\n \n"))
		if len(got) != 1 || !reflect.DeepEqual(got[0], tt.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestFactsOfEventLines(t *testing.T) {
	mint, wallet, delegate, closer := mustKey(testKey(11)), mustKey(testKey(12)), mustKey(testKey(13)), mustKey(testKey(14))
	token := func(more string) string {
		return fmt.Sprintf(`,"token":{"mint":%q,"owner":%q,"amount":"18446744073709551615"%s}`, mint, wallet, more)
	}
	balance := ledger.TokenAccount{Mint: mint, Owner: wallet, Amount: 1<<64 - 1}
	plain, frozen, unknown := balance, balance, balance
	plain.Details = ledger.Some(ledger.TokenDetails{State: ledger.TokenInitialized})
	frozen.Details = ledger.Some(ledger.TokenDetails{State: ledger.TokenFrozen, Delegate: ledger.Some(delegate), DelegatedAmount: 7, CloseAuthority: ledger.Some(closer)})
	unknown.Owner = ledger.Pubkey{}

	mintData := make([]byte, 82)
	binary.LittleEndian.PutUint64(mintData[36:], 77)
	mintData[44], mintData[45] = 6, 1
	data := base64.StdEncoding.EncodeToString(mintData)
	owner := fmt.Sprintf(`,"owner":%q`, ledger.TokenProgram)
	mintWithData := ledger.AccountWrite{Owner: ledger.TokenProgram, Known: ledger.FieldOwner}
	mintWithData.SetTokenFacts(mintData)
	if mintWithData.Mint == nil || mintWithData.Mint.Decimals != 6 {
		t.Fatalf("the data teaches %+v", mintWithData.Mint)
	}

	write1 := func(known ledger.Fields, t *ledger.TokenAccount, m *ledger.Mint) ledger.AccountWrite {
		return ledger.AccountWrite{Known: known, Token: t, Mint: m}
	}
	tests := map[string]struct {
		fields string
		want   ledger.AccountWrite
	}{
		"nothing":           {"", write1(0, nil, nil)},
		"nulls":             {`,"data":null,"token":null,"mint":null,"owner":null,"executable":null,"rent_epoch":null`, write1(0, nil, nil)},
		"a balance":         {token(""), write1(ledger.FieldToken, &balance, nil)},
		"a balance, nulls":  {token(`,"state":null,"delegate":null,"delegated_amount":null,"close_authority":null,"is_native":null`), write1(ledger.FieldToken, &balance, nil)},
		"a token account":   {token(`,"state":"initialized","delegate":null,"delegated_amount":"0","close_authority":null,"is_native":false`), write1(ledger.FieldToken, &plain, nil)},
		"all details":       {token(fmt.Sprintf(`,"state":"frozen","delegate":%q,"delegated_amount":"7","close_authority":%q`, delegate, closer)), write1(ledger.FieldToken, &frozen, nil)},
		"a mint":            {`,"mint":{"decimals":6,"supply":"12","scaled":false}`, write1(ledger.FieldMint, nil, &ledger.Mint{Decimals: 6, Supply: ledger.Some(uint64(12)), Scaled: ledger.Some(false)})},
		"a mint, nulls":     {`,"mint":{"decimals":255,"supply":null,"scaled":null}`, write1(ledger.FieldMint, nil, &ledger.Mint{Decimals: 255})},
		"data":              {owner + `,"data":"` + data + `"`, mintWithData},
		"data and encoding": {owner + `,"data":["` + data + `","base64"]`, mintWithData},
	}
	unknownWallet := write1(ledger.FieldToken, &unknown, nil)
	unknownWallet.TokenOwnerUnknown = true
	tests["a balance, wallet unknown"] = struct {
		fields string
		want   ledger.AccountWrite
	}{fmt.Sprintf(`,"token":{"mint":%q,"owner":null,"amount":"18446744073709551615"}`, mint), unknownWallet}

	for name, tt := range tests {
		tt.want.Pubkey, tt.want.Lamports = mustKey(testKey(1)), 5
		account := fmt.Sprintf(`{"pubkey":%q,"lamports":5%s}`, testKey(1), tt.fields)
		base := bases(t, write(t, "a", `{"type":"accounts","slot":1,"accounts":[`+account+`]}`))
		block := blocks(t, write(t, "a", fmt.Sprintf(`{"type":"block","slot":1,"parent_slot":0,"blockhash":%q,"accounts":[%s]}`, testKey(2), account)))
		for _, got := range [][]ledger.AccountWrite{base[0].Accounts, block[0].Accounts} {
			if len(got) != 1 || !reflect.DeepEqual(got[0], tt.want) {
				t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
			}
		}
	}
}

// A mint whose own account nobody has seen has facts, but no lamports.
func TestMintFactsWithoutLamportsStandApart(t *testing.T) {
	line := fmt.Sprintf(`{"type":"accounts","slot":1,"accounts":[{"pubkey":%q,"mint":{"decimals":6,"supply":null,"scaled":true}}]}`, testKey(1))
	got := bases(t, write(t, "a", line))[0]
	want := []ledger.MintWrite{{Pubkey: mustKey(testKey(1)), Mint: ledger.Mint{Decimals: 6, Scaled: ledger.Some(true)}}}
	if len(got.Accounts) != 0 || !reflect.DeepEqual(got.Mints, want) {
		t.Errorf("got %+v and %+v, want %+v", got.Accounts, got.Mints, want)
	}
}
