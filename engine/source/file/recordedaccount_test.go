package file

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"testing"

	"github.com/mr-tron/base58"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
)

// slotWrite is an account of base state.
type slotWrite struct {
	slot ledger.Slot
	ledger.AccountWrite
}

// oracleWrite returns a recorded account, which stands beside its key or holds it.
func oracleWrite(m map[string]any) slotWrite {
	a := m
	if inner, ok := m["account"].(map[string]any); ok {
		a = inner
	}
	w := slotWrite{AccountWrite: ledger.AccountWrite{
		Pubkey: ledger.Pubkey(oracleBytes(m["pubkey"])), Owner: ledger.Pubkey(oracleBytes(a["owner"])),
		Executable: a["executable"] == true, Known: ledger.FieldsAll,
	}}
	fmt.Sscan(text(m["slot"]), &w.slot)
	fmt.Sscan(text(a["lamports"])+" "+text(a["rentEpoch"]), &w.Lamports, &w.RentEpoch)
	w.SetTokenFacts(oracleBytes(a["data"]))
	return w
}

// oracleBytes returns a key or data, which is base58, base64 with its name, or a list of bytes.
func oracleBytes(v any) []byte {
	switch v := v.(type) {
	case string:
		raw, _ := base58.Decode(v)
		return raw
	case []any:
		if len(v) == 2 && fmt.Sprint(v[1]) == "base64" {
			raw, _ := base64.StdEncoding.DecodeString(v[0].(string))
			return raw
		}
		raw := make([]byte, len(v))
		for i, n := range v {
			fmt.Sscan(fmt.Sprint(n), &raw[i])
		}
		return raw
	}
	return nil
}

func TestRecordedAccountsAreReadAsRecorded(t *testing.T) {
	type counts struct{ accounts, tokens, mints int }
	for pattern, recordedCounts := range map[string]counts{
		"accounts/mainnet-genesis.accounts.json":            {431, 0, 0},
		"accounts/account-updates.json":                     {84, 13, 24},
		"accounts/vixen/*":                                  {4, 0, 2},
		"vectors/kit-accounts/*":                            {18, 4, 9},
		"rpc/http/Accounts/GetProgramAccountsResponse.json": {2, 0, 0},
	} {
		var got, want []slotWrite
		for _, path := range recorded(t, pattern) {
			for _, state := range bases(t, path) {
				for _, w := range state.Accounts {
					got = append(got, slotWrite{state.Slot, w})
				}
			}
			for _, m := range oracleObjects(t, path) {
				want = append(want, oracleWrite(m))
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v\nwant %+v", pattern, got, want)
		}
		found := counts{accounts: len(got)}
		for _, w := range got {
			if w.Token != nil {
				found.tokens++
			}
			if w.Mint != nil {
				found.mints++
			}
		}
		if found != recordedCounts {
			t.Errorf("%s: %+v, want %+v", pattern, found, recordedCounts)
		}
	}
}

func TestRecordedAnswersTakeTheirKeyFromTheNameOfTheFile(t *testing.T) {
	const tokenProgram = `"owner":"TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"`
	k := testKey(9)
	for name, want := range map[string]struct {
		slot   ledger.Slot
		fields string
	}{
		"GetAccountInfoResponse.json": {79200467, `"lamports":5478840,"owner":"11111111111111111111111111111111",` +
			`"executable":false,"rent_epoch":195,"token":false,"mint":false`},
		"GetTokenAccountInfoResponse.json": {103677806, `"lamports":2039280,` + tokenProgram + `,"executable":false,"rent_epoch":239,` +
			`"token":{"mint":"2v6JjYRt93Z1h8iTZavSdGdDufocHCFKT8gvHpg3GNko","owner":"47vp5BqxBQoMJkitajbsZRhyAR5phW28nKPvXhFDKTFH",` +
			`"amount":"1","state":"initialized","delegate":null,"delegated_amount":"0","close_authority":null,"is_native":false},` +
			`"mint":false`},
		"GetTokenMintInfoResponse.json": {103677835, `"lamports":1461600,` + tokenProgram + `,"executable":false,"rent_epoch":239,` +
			`"token":false,"mint":{"decimals":0,"supply":"1","scaled":false}`},
	} {
		path := write(t, "account-"+k+".json", string(datatest.Read(t, datatest.Path(t, "rpc/http/Accounts/"+name))))
		wantLine := fmt.Sprintf(`{"type":"accounts","slot":%d,"accounts":[{"pubkey":%q,%s}]}`, want.slot, k, want.fields)
		if got := eventLinesOf(events(t, path)); got != wantLine+"\n" {
			t.Errorf("%s:\n got %swant %s", name, got, wantLine)
		}
	}
}
