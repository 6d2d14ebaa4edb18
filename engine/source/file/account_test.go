package file

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"testing"

	"github.com/mr-tron/base58"

	"ledgerd/engine/ledger"
)

func TestEncodingsOfAccountDataAreTheSame(t *testing.T) {
	// A token account: mint, wallet, amount 5, no delegate, initialized.
	data := make([]byte, 165)
	data[0], data[32], data[64], data[108] = 1, 2, 5, 1
	want := ledger.AccountWrite{Pubkey: mustKey(testKey(1)), Lamports: 7, Owner: ledger.TokenProgram, Known: ledger.FieldOwner}
	want.SetTokenFacts(data)
	if want.Token == nil || want.Token.Amount != 5 {
		t.Fatalf("the data teaches %+v", want.Token)
	}
	unknown := want
	unknown.Token, unknown.Known = nil, ledger.FieldOwner

	b64 := base64.StdEncoding.EncodeToString(data)
	list := fmt.Sprint(data[0])
	for _, c := range data[1:] {
		list += fmt.Sprint(",", c)
	}
	tests := map[string]struct {
		fields string
		want   ledger.AccountWrite
	}{
		"base64":           {`"data":["` + b64 + `","base64"]`, want},
		"base58":           {`"data":["` + base58.Encode(data) + `","base58"]`, want},
		"base58 alone":     {`"data":"` + base58.Encode(data) + `"`, want},
		"base64+zstd":      {`"data":["` + base64.StdEncoding.EncodeToString([]byte(zstded(t, string(data)))) + `","base64+zstd"]`, want},
		"bytes":            {`"data":[` + list + `]`, want},
		"whole by size":    {`"space":165,"data":["` + b64 + `","base64"]`, want},
		"a slice of it":    {`"space":200,"data":["` + b64 + `","base64"]`, unknown},
		"null":             {`"data":null`, unknown},
		"without the data": {`"space":165`, unknown},
	}
	for name, tt := range tests {
		content := fmt.Sprintf(`{"pubkey":%q,"lamports":7,"owner":%q,%s}`, testKey(1), ledger.TokenProgram, tt.fields)
		got := bases(t, write(t, "a", content))[0].Accounts[0]
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestFormsOfAccounts(t *testing.T) {
	k := testKey(1)
	account := `{"lamports":7}`
	keyed := fmt.Sprintf(`{"pubkey":%q,"lamports":7}`, k)
	write7 := ledger.AccountWrite{Pubkey: mustKey(k), Lamports: 7}
	tests := map[string]struct {
		name, content string
		slot          ledger.Slot
		want          ledger.AccountWrite
	}{
		"plain":                     {"a", keyed, 0, write7},
		"account beside its key":    {"a", fmt.Sprintf(`{"pubkey":%q,"account":%s}`, k, account), 0, write7},
		"with its slot":             {"a", fmt.Sprintf(`{"slot":8,"account":%s,"pubkey":%q}`, account, k), 8, write7},
		"response":                  {"a", `{"result":{"context":{"slot":8},"value":` + keyed + `}}`, 8, write7},
		"response, key in the name": {"dump_" + k + ".json", `{"result":{"context":{"slot":8},"value":` + account + `}}`, 8, write7},
		"result, key beside it":     {"a", fmt.Sprintf(`{"context":{"slot":8},"value":%s,"pubkey":%q}`, account, k), 8, write7},
		"response of a program":     {"a", fmt.Sprintf(`{"result":[{"pubkey":%q,"account":%s}]}`, k, account), 0, write7},
		"response with context":     {"a", fmt.Sprintf(`{"result":{"context":{"slot":8},"value":[{"pubkey":%q,"account":%s}]}}`, k, account), 8, write7},
		"the node has no account":   {k + ".json", `{"result":{"context":{"slot":8},"value":null}}`, 8, ledger.AccountWrite{Pubkey: mustKey(k)}},
		"the object's key counts":   {testKey(2) + ".json", keyed, 0, write7},
		"all fields, as nulls":      {"a", fmt.Sprintf(`{"pubkey":%q,"lamports":7,"owner":null,"executable":null,"rentEpoch":null,"data":null}`, k), 0, write7},
	}
	for name, tt := range tests {
		got := bases(t, write(t, tt.name, tt.content))
		if len(got) != 1 || got[0].Slot != tt.slot || !reflect.DeepEqual(got[0].Accounts, []ledger.AccountWrite{tt.want}) {
			t.Errorf("%s: got %+v, want %+v at slot %d", name, got[0], tt.want, tt.slot)
		}
	}
	if got := keyInName(testKey(1) + "-" + testKey(2)); got.Known {
		t.Errorf("two keys in a name: got %s", got.Value)
	}
	if got := keyInName(testKey(1) + "/x" + testKey(2) + "." + testKey(1)); got != ledger.Some(mustKey(testKey(1))) {
		t.Errorf("one key twice in a name: got %+v", got)
	}
}

func TestParsedDataOfOtherPrograms(t *testing.T) {
	mintOf := func(extension string) string {
		return `{"program":"spl-token-2022","parsed":{"type":"mint","info":{"decimals":3,"supply":"9","extensions":[{"extension":"` + extension + `","state":{}}]}}}`
	}
	mint := func(scaled bool) *ledger.Mint {
		return &ledger.Mint{Decimals: 3, Supply: ledger.Some(uint64(9)), Scaled: ledger.Some(scaled)}
	}
	tests := map[string]struct {
		data string
		want *ledger.Mint
	}{
		"a stake account":    {`{"program":"stake","parsed":{"type":"delegated","info":{}},"space":200}`, nil},
		"a multisig":         {`{"program":"spl-token","parsed":{"type":"multisig","info":{}}}`, nil},
		"a mint":             {mintOf("metadataPointer"), mint(false)},
		"a mint that scales": {mintOf("scaledUiAmountConfig"), mint(true)},
		"a mint of interest": {mintOf("interestBearingConfig"), mint(true)},
	}
	for name, tt := range tests {
		w := bases(t, write(t, "a", fmt.Sprintf(`{"pubkey":%q,"lamports":7,"data":%s}`, testKey(1), tt.data)))[0].Accounts[0]
		if w.Known != ledger.FieldToken|ledger.FieldMint || w.Token != nil || !reflect.DeepEqual(w.Mint, tt.want) {
			t.Errorf("%s: got %+v and %+v, want %+v", name, w, w.Mint, tt.want)
		}
	}
}
