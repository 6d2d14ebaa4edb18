package file

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/mr-tron/base58"

	"ledgerd/engine/ledger/datatest"
)

// This file reads recorded blocks a second time, from plain maps and with another base58,
// so that the tests compare with what was recorded and not with our own reading.

// oracleBlock is a block in texts, "" for what is not known.
type oracleBlock struct {
	slot, parent, hash, previous, time, height string
	transactions                               []oracleTransaction
	accounts                                   map[string]oracleAccount // live ones after the block
	decimals                                   map[string]string        // by mint
}

type oracleTransaction struct {
	signature, fee, success string
	accounts                []string
}

type oracleAccount struct {
	lamports, owner string
	token           oracleToken
}

type oracleToken struct{ mint, owner, amount string }

// oracleObjects returns the objects of a recorded file: one or a list, or a node's response with either.
func oracleObjects(t testing.TB, path string) (objects []map[string]any) {
	t.Helper()
	var v any
	datatest.JSON(t, path, &v)
	if response, ok := v.(map[string]any); ok && response["result"] != nil {
		v = response["result"]
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, v := range list {
		objects = append(objects, v.(map[string]any))
	}
	return objects
}

func newOracleBlock(m map[string]any) oracleBlock {
	b := oracleBlock{
		slot: text(m["slot"]), parent: text(m["parentSlot"]), hash: text(m["blockhash"]),
		previous: strings.TrimPrefix(text(m["previousBlockhash"]), "11111111111111111111111111111111"),
		time:     text(m["blockTime"]), height: text(m["blockHeight"]),
		accounts: map[string]oracleAccount{}, decimals: map[string]string{},
	}
	for _, v := range m["transactions"].([]any) {
		b.add(v.(map[string]any))
	}
	rewards, _ := m["rewards"].([]any)
	for _, v := range rewards {
		r := v.(map[string]any)
		b.balance(text(r["pubkey"]), text(r["postBalance"]))
	}
	return b
}

// add applies one transaction.
func (b *oracleBlock) add(m map[string]any) {
	t := oracleTransaction{}
	isParsed := false
	switch body := m["transaction"].(type) {
	case []any:
		wire, err := base64.StdEncoding.DecodeString(body[0].(string))
		if err != nil {
			panic(err)
		}
		t.signature, t.accounts = oracleWire(wire)
	case map[string]any:
		t.signature = text(body["signatures"].([]any)[0])
		for _, k := range body["message"].(map[string]any)["accountKeys"].([]any) {
			if parsed, ok := k.(map[string]any); ok {
				k, isParsed = parsed["pubkey"], true
			}
			t.accounts = append(t.accounts, k.(string))
		}
	}
	meta, ok := m["meta"].(map[string]any)
	if !ok {
		b.transactions = append(b.transactions, t)
		return
	}
	if loaded, ok := meta["loadedAddresses"].(map[string]any); ok && !isParsed {
		for _, part := range []string{"writable", "readonly"} {
			for _, k := range loaded[part].([]any) {
				t.accounts = append(t.accounts, k.(string))
			}
		}
	}
	t.fee, t.success = text(meta["fee"]), strconv.FormatBool(meta["err"] == nil)
	b.transactions = append(b.transactions, t)
	for i, lamports := range meta["postBalances"].([]any) {
		b.balance(t.accounts[i], text(lamports))
	}
	b.tokens(t.accounts, meta)
}

func (b *oracleBlock) balance(key, lamports string) {
	a := b.accounts[key]
	a.lamports = lamports
	b.accounts[key] = a
	if lamports == "0" {
		delete(b.accounts, key)
	}
}

// tokens applies the token balances of one transaction.
func (b *oracleBlock) tokens(accounts []string, meta map[string]any) {
	rows := func(name string, change func(a *oracleAccount, row map[string]any)) {
		list, _ := meta[name].([]any)
		for _, v := range list {
			row := v.(map[string]any)
			i, _ := strconv.Atoi(text(row["accountIndex"]))
			if a, live := b.accounts[accounts[i]]; live {
				change(&a, row)
				b.accounts[accounts[i]] = a
			}
		}
	}
	rows("preTokenBalances", func(a *oracleAccount, _ map[string]any) { a.token = oracleToken{} })
	rows("postTokenBalances", func(a *oracleAccount, row map[string]any) {
		amount := row["uiTokenAmount"].(map[string]any)
		b.decimals[text(row["mint"])] = text(amount["decimals"])
		a.owner = cmp.Or(text(row["programId"]), a.owner)
		if owner := text(row["owner"]); owner != "" {
			a.token = oracleToken{text(row["mint"]), owner, text(amount["amount"])}
		}
	})
}

// oracleWire returns the first signature and the static keys of a transaction.
func oracleWire(wire []byte) (signature string, keys []string) {
	compact := func() uint64 {
		n, size := binary.Uvarint(wire)
		wire = wire[size:]
		return n
	}
	signatures := compact()
	signature = base58.Encode(wire[:64])
	wire = wire[64*signatures:]
	if wire[0] >= 0x80 {
		wire = wire[1:] // version
	}
	wire = wire[3:] // header
	for range compact() {
		keys = append(keys, base58.Encode(wire[:32]))
		wire = wire[32:]
	}
	return signature, keys
}

// text returns a JSON string or number as text, "" for null and absent.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}
