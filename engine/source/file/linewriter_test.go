package file

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/source/nodejson"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// parse returns the event of a line.
func parse(line []byte) (ledger.Event, error) {
	data := new(nodejson.DataDecoder)
	defer data.Close()
	return (&lineDecoder{data: data}).decodeLine(line)
}

func TestEventLinesSayWhatEventsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkEventLine(t, genEvent(t)) })
}

// What means nothing in an event is left out.
func TestEventLinesLeaveOutWhatMeansNothing(t *testing.T) {
	key, k := keyOf(1), testKey(1)
	mint := ledger.Mint{Decimals: 2, Provenance: 7}
	got := string(AppendEventLine(nil, &ledger.BaseState{Slot: 2, Mints: []ledger.MintWrite{{Pubkey: key, Mint: mint}}, Accounts: []ledger.AccountWrite{{
		Pubkey: key, Lamports: 1, Owner: key, Executable: true, RentEpoch: 7, Known: ledger.FieldToken | ledger.FieldMint, Mint: &mint,
		Token: &ledger.TokenAccount{Mint: key, Owner: key, Amount: 1}, TokenOwnerUnknown: true,
	}}}))
	want := fmt.Sprintf(`{"type":"accounts","slot":2,"accounts":[{"pubkey":%q,"lamports":1,"token":{"mint":%q,"amount":"1","is_native":false},"mint":{"decimals":2}},{"pubkey":%q,"mint":{"decimals":2}}]}`, k, k, k)
	if got != want+"\n" {
		t.Errorf("got %swant %s", got, want)
	}
}

// The lines of testdata/events.ndjson are released: they stay readable, and are written
// the same.
func TestEventLinesAreWrittenAsReleased(t *testing.T) {
	path := filepath.Join("testdata", "events.ndjson")
	lines := eventLinesOf(goldenEvents())
	if *update {
		writeFile(t, path, lines)
	}
	if want := string(datatest.Read(t, path)); lines != want {
		t.Errorf("got\n%s\nwant\n%s", lines, want)
	}
	got := events(t, path)
	for i, e := range goldenEvents() {
		if i >= len(got) || !bytes.Equal(codec.AppendEvent(nil, got[i]), codec.AppendEvent(nil, e)) {
			t.Errorf("event %d: got %+v, want %+v", i, got, e)
		}
	}
}

// goldenEvents returns events that between them use all there is to say.
func goldenEvents() []ledger.Event {
	key := func(name string) ledger.Pubkey { return sha256.Sum256([]byte(name)) }
	wallet := ledger.AccountWrite{Pubkey: key("wallet"), Lamports: 1<<64 - 1, RentEpoch: 1<<64 - 1, Known: ledger.FieldsAll}
	token := ledger.AccountWrite{Pubkey: key("token"), Lamports: 2039280, Owner: ledger.TokenProgram, Known: ledger.FieldOwner | ledger.FieldToken,
		Token: &ledger.TokenAccount{Mint: key("mint"), Owner: key("wallet"), Amount: 1<<64 - 1, Details: ledger.Some(ledger.TokenDetails{
			State: ledger.TokenFrozen, Delegate: ledger.Some(key("delegate")), DelegatedAmount: 7, CloseAuthority: ledger.Some(key("closer"))})}}
	wrapped := token
	wrapped.Pubkey = key("wrapped")
	wrapped.Token = &ledger.TokenAccount{Mint: ledger.NativeMint, Owner: key("wallet"), Details: ledger.Some(ledger.TokenDetails{State: ledger.TokenInitialized})}
	mint := ledger.AccountWrite{Pubkey: key("mint"), Lamports: 1461600, Owner: ledger.Token2022Program, Known: ledger.FieldOwner | ledger.FieldMint | ledger.FieldToken,
		Mint: &ledger.Mint{Decimals: 255, Supply: ledger.Some(uint64(0)), Scaled: ledger.Some(true)}}
	balance := ledger.AccountWrite{Pubkey: key("balance"), Lamports: 1, Known: ledger.FieldToken | ledger.FieldExecutable, Executable: true,
		Token: &ledger.TokenAccount{Mint: key("mint"), Owner: key("wallet"), Amount: 5}}
	oldBalance := ledger.AccountWrite{Pubkey: key("old balance"), Lamports: 1, Known: ledger.FieldToken, TokenOwnerUnknown: true,
		Token: &ledger.TokenAccount{Mint: key("mint"), Amount: 5}}
	seen := ledger.MintWrite{Pubkey: key("seen mint"), Mint: ledger.Mint{Decimals: 6}}

	whole := &ledger.Block{Slot: 9, ParentSlot: 7, Blockhash: ledger.Hash(key("9")), PreviousBlockhash: ledger.Some(ledger.Hash(key("7"))),
		Time: ledger.Some(int64(-5)), Height: ledger.Some(uint64(8)), Status: ledger.Finalized, TransactionCount: 3,
		Accounts: []ledger.AccountWrite{balance, oldBalance, {Pubkey: key("closed")}}, Mints: []ledger.MintWrite{seen}}
	a, b := key("signature 1"), key("signature 2")
	signature := ledger.Signature(append(a[:], b[:]...))
	whole.AddTransaction(ledger.Transaction{Signature: signature, Success: ledger.Some(true), Fee: ledger.Some(ledger.Lamports(5000)), Accounts: []ledger.Pubkey{a, b}})
	whole.AddTransaction(ledger.Transaction{Signature: signature})
	return []ledger.Event{
		&ledger.BaseState{Slot: 6, Accounts: []ledger.AccountWrite{wallet, token, wrapped, mint}, Mints: []ledger.MintWrite{seen}},
		&ledger.BaseState{},
		whole,
		&ledger.Block{Slot: 10, ParentSlot: 9, Blockhash: ledger.Hash(key("10")), Status: ledger.Confirmed},
		&ledger.Block{Slot: 11, ParentSlot: 10, Blockhash: ledger.Hash(key("11"))},
		&ledger.SlotStatus{Slot: 10, Status: ledger.StatusFinalized},
		&ledger.SlotStatus{Slot: 11, Status: ledger.StatusConfirmed},
		&ledger.SlotStatus{Slot: 11, Status: ledger.StatusDead, Blockhash: ledger.Some(ledger.Hash(key("11")))},
	}
}
