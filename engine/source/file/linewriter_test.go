package file

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/source/nodejson"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// parse returns the only event of a line.
func parse(line []byte) (event ledger.Event, err error) {
	emit := func(_ context.Context, e ledger.Event) error {
		event = e
		return nil
	}
	data := new(nodejson.DataDecoder)
	defer data.Close()
	reader := lineReader{decoder: lineDecoder{data: data}, out: &sink{emit: emit}}
	return event, reader.run(context.Background(), bufio.NewReader(bytes.NewReader(line)))
}

// Two events are the same if their encodings are: each value has exactly one.
func TestEventLinesSayWhatEventsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := genEvent(t)
		line := AppendEventLine(nil, e)
		got, err := parse(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if !bytes.Equal(codec.AppendEvent(nil, got), codec.AppendEvent(nil, e)) {
			t.Fatalf("%s:\n got %+v\nwant %+v", line, got, e)
		}
		if again := AppendEventLine([]byte("x"), got); string(again) != "x"+string(line) {
			t.Fatalf("written again: %s, want %s", again, line)
		}
	})
}

// Whatever a node answered, its event lines say the same.
func TestRecordedBlocksSurviveAsEventLines(t *testing.T) {
	for _, folder := range []string{"blocks", "accounts"} {
		for _, e := range events(t, datatest.Path(t, folder)) {
			checkEventLine(t, e)
		}
	}
}

// What means nothing in an event is left out, and comes back as nothing.
func TestEventLinesLeaveOutWhatMeansNothing(t *testing.T) {
	key := mustKey(testKey(1))
	mint := func(by ledger.Provenance) *ledger.Mint { return &ledger.Mint{Decimals: 2, Provenance: by} }
	balance := func(owner ledger.Pubkey) *ledger.TokenAccount {
		return &ledger.TokenAccount{Mint: key, Owner: owner, Amount: 1}
	}
	block := func(previous ledger.Opt[ledger.Hash], by ledger.Provenance, owner ledger.Pubkey) *ledger.Block {
		return &ledger.Block{Slot: 2, ParentSlot: 1, PreviousBlockhash: previous,
			Accounts: []ledger.AccountWrite{{
				Pubkey: key, Lamports: 1, Known: ledger.FieldToken | ledger.FieldMint,
				Token: balance(owner), TokenOwnerUnknown: true, Mint: mint(by),
			}},
			Mints: []ledger.MintWrite{{Pubkey: key, Mint: *mint(by)}},
		}
	}
	got, err := parse(AppendEventLine(nil, block(ledger.Some(ledger.Hash{}), 7, key)))
	if err != nil {
		t.Fatal(err)
	}
	want := block(ledger.Opt[ledger.Hash]{}, 0, ledger.Pubkey{})
	if !bytes.Equal(codec.AppendEvent(nil, got), codec.AppendEvent(nil, want)) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// The lines of testdata/events.ndjson are released: they stay readable, and are written
// the same.
func TestEventLinesAreWrittenAsReleased(t *testing.T) {
	path := filepath.Join("testdata", "events.ndjson")
	var lines []byte
	for _, e := range goldenEvents() {
		lines = AppendEventLine(lines, e)
	}
	if *update {
		writeFile(t, path, string(lines))
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(lines, want) {
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
