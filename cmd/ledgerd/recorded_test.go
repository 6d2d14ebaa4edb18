package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mr-tron/base58"

	"ledgerd/engine/ledger/datatest"
	clientlib "ledgerd/httpd/client"
)

// This file reads recorded blocks from plain maps, without any of our own code, so that the
// answers of the node are compared with what was recorded.

// recording is the ledger as the recorded blocks show it, in the records of the client library.
type recording struct {
	blocks   []clientlib.Block // Signatures and Records are filled
	accounts map[string]*holding
	touched  map[string]bool   // every key that was ever shown
	decimals map[string]*uint8 // by mint
	scaled   map[string]bool   // mints whose shown amounts are not the plain ones
}

// holding is a live account of a recording.
type holding struct {
	lamports uint64
	program  string // owner, "" while unknown
	token    *clientlib.Token
	wallet   string // of token
}

// readBlocks reads the blocks of recorded files, one after the other. slot is that of the
// only block of a file which does not say it.
func readBlocks(t testing.TB, slot uint64, paths ...string) *recording {
	t.Helper()
	l := &recording{
		accounts: map[string]*holding{}, touched: map[string]bool{},
		decimals: map[string]*uint8{}, scaled: map[string]bool{},
	}
	for _, path := range paths {
		var v any
		datatest.JSON(t, path, &v)
		if response, ok := v.(map[string]any); ok && response["result"] != nil {
			v = response["result"]
		}
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, b := range list {
			l.addBlock(b.(map[string]any), slot)
		}
	}
	return l
}

func (l *recording) addBlock(m map[string]any, slot uint64) {
	if own, ok := m["slot"].(json.Number); ok {
		slot = number(own)
	}
	transactions := m["transactions"].([]any)
	b := clientlib.Block{
		Slot: slot, Hash: m["blockhash"].(string), ParentSlot: number(m["parentSlot"]), Transactions: len(transactions),
		Commitment: clientlib.Finalized, Signatures: []string{}, Records: []clientlib.Transaction{},
	}
	if unix, ok := m["blockTime"].(json.Number); ok {
		at := time.Unix(int64(number(unix)), 0).UTC()
		b.Timestamp = &at
	}
	if previous := m["previousBlockhash"].(string); strings.Trim(previous, "1") != "" {
		b.PreviousHash = &previous
	}
	if m["blockHeight"] != nil {
		height := number(m["blockHeight"])
		b.Height = &height
	}
	for _, v := range transactions {
		t := l.addTransaction(v.(map[string]any))
		t.Slot, t.Timestamp = b.Slot, b.Timestamp
		b.Signatures, b.Records = append(b.Signatures, t.Signature), append(b.Records, t)
	}
	rewards, _ := m["rewards"].([]any)
	for _, v := range rewards {
		r := v.(map[string]any)
		l.setBalance(r["pubkey"].(string), number(r["postBalance"]))
	}
	l.blocks = append(l.blocks, b)
}

func (l *recording) addTransaction(m map[string]any) (t clientlib.Transaction) {
	loadedListed := false // jsonParsed lists loaded addresses among the keys
	switch body := m["transaction"].(type) {
	case []any:
		t.Signature, t.Accounts = readWire(body[0].(string))
	case map[string]any:
		t.Signature = body["signatures"].([]any)[0].(string)
		for _, k := range body["message"].(map[string]any)["accountKeys"].([]any) {
			if parsed, ok := k.(map[string]any); ok {
				k, loadedListed = parsed["pubkey"], true
			}
			t.Accounts = append(t.Accounts, k.(string))
		}
	}
	meta, ok := m["meta"].(map[string]any)
	if !ok {
		for _, k := range t.Accounts {
			l.touched[k] = true
		}
		return t
	}
	if loaded, ok := meta["loadedAddresses"].(map[string]any); ok && !loadedListed {
		for _, k := range slices.Concat(loaded["writable"].([]any), loaded["readonly"].([]any)) {
			t.Accounts = append(t.Accounts, k.(string))
		}
	}
	fee, success := number(meta["fee"]), meta["err"] == nil
	t.Fee, t.Success = &fee, &success
	for i, lamports := range meta["postBalances"].([]any) {
		l.setBalance(t.Accounts[i], number(lamports))
	}
	l.addTokens(t.Accounts, meta)
	return t
}

// setBalance sets a balance; an account without lamports is gone with all it was.
func (l *recording) setBalance(key string, lamports uint64) {
	l.touched[key] = true
	switch {
	case lamports == 0:
		delete(l.accounts, key)
	case l.accounts[key] == nil:
		l.accounts[key] = &holding{lamports: lamports}
	default:
		l.accounts[key].lamports = lamports
	}
}

// addTokens applies the token balances of one transaction: an account with one before and
// none after it is no token account any more.
func (l *recording) addTokens(accounts []string, meta map[string]any) {
	before, _ := meta["preTokenBalances"].([]any)
	after, ok := meta["postTokenBalances"].([]any)
	if !ok {
		return
	}
	stays := map[string]bool{}
	for _, v := range after {
		row := v.(map[string]any)
		key := accounts[number(row["accountIndex"])]
		stays[key] = true
		l.addToken(key, row)
	}
	for _, v := range before {
		key := accounts[number(v.(map[string]any)["accountIndex"])]
		if a := l.accounts[key]; a != nil && !stays[key] {
			a.token = nil
		}
	}
}

func (l *recording) addToken(key string, row map[string]any) {
	mint, amount := row["mint"].(string), row["uiTokenAmount"].(map[string]any)
	decimals := uint8(number(amount["decimals"]))
	l.decimals[mint] = &decimals
	text := amount["amount"].(string)
	shown, _ := amount["uiAmountString"].(string)
	if strings.Contains(shown, ".") {
		shown = strings.TrimRight(strings.TrimRight(shown, "0"), ".")
	}
	if shown != plainAmount(text, int(decimals)) {
		l.scaled[mint] = true
	}
	a := l.accounts[key]
	wallet, _ := row["owner"].(string)
	if a == nil || wallet == "" {
		return // gone, or of the years that did not record the wallet
	}
	if program, ok := row["programId"].(string); ok {
		a.program = program
	}
	a.wallet, a.token = wallet, &clientlib.Token{TokenAccount: key, ProgramID: a.program, TokenFacts: clientlib.TokenFacts{
		Mint: mint, Amount: text, UIAmount: &shown, IsNative: mint == "So11111111111111111111111111111111111111112",
	}}
}

// plainAmount writes an amount with its decimals, without zeros at the end.
func plainAmount(amount string, decimals int) string {
	if decimals == 0 {
		return amount
	}
	amount = strings.Repeat("0", max(0, decimals+1-len(amount))) + amount
	point := len(amount) - decimals
	return strings.TrimRight(strings.TrimRight(amount[:point]+"."+amount[point:], "0"), ".")
}

// tokens returns the token records of every wallet, in key order of the token accounts.
func (l *recording) tokens() map[string][]clientlib.Token {
	wallets := map[string][]clientlib.Token{}
	for _, key := range inKeyOrder(maps.Keys(l.accounts)) {
		a := l.accounts[key]
		if a.token == nil {
			continue
		}
		t := *a.token
		if t.Decimals = l.decimals[t.Mint]; l.scaled[t.Mint] {
			t.UIAmount = nil
		}
		wallets[a.wallet] = append(wallets[a.wallet], t)
	}
	return wallets
}

// programs returns the accounts of every program, in key order.
func (l *recording) programs() map[string][]clientlib.Account {
	programs := map[string][]clientlib.Account{}
	for _, key := range inKeyOrder(maps.Keys(l.accounts)) {
		if a := l.accounts[key]; a.program != "" {
			programs[a.program] = append(programs[a.program], a.record(key))
		}
	}
	return programs
}

func (a *holding) record(key string) clientlib.Account {
	return clientlib.Account{Pubkey: key, Lamports: a.lamports, Owner: a.program}
}

// unknown returns what a block's metadata does not tell of the account.
func (a *holding) unknown() string {
	if a.program == "" {
		return "owner,executable,rent_epoch"
	}
	return "executable,rent_epoch"
}

// newestFirst returns all transactions as the recent list orders them.
func (l *recording) newestFirst() (all []clientlib.Transaction) {
	for _, b := range slices.Backward(l.blocks) {
		for _, t := range slices.Backward(b.Records) {
			all = append(all, t)
		}
	}
	return all
}

// inKeyOrder sorts keys by their bytes.
func inKeyOrder(keys func(yield func(string) bool)) []string {
	return slices.SortedFunc(keys, func(a, b string) int { return bytes.Compare(keyBytes(a), keyBytes(b)) })
}

func keyBytes(key string) []byte {
	b, err := base58.Decode(key)
	if err != nil || len(b) != 32 {
		panic("not a key: " + key)
	}
	return b
}

// readWire returns the first signature and the static keys of a transaction in base64.
func readWire(text string) (signature string, keys []string) {
	wire, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(err)
	}
	count := func() (n int) {
		for shift := 0; ; shift += 7 {
			c := wire[0]
			wire = wire[1:]
			if n |= int(c&0x7f) << shift; c < 0x80 {
				return n
			}
		}
	}
	signatures := count()
	signature = base58.Encode(wire[:64])
	wire = wire[64*signatures:]
	if wire[0] >= 0x80 {
		wire = wire[1:] // the version
	}
	wire = wire[3:] // the header
	for range count() {
		keys = append(keys, base58.Encode(wire[:32]))
		wire = wire[32:]
	}
	return signature, keys
}

func number(v any) (n uint64) {
	if err := json.Unmarshal([]byte(v.(json.Number)), &n); err != nil {
		panic(err)
	}
	return n
}
