package file

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
)

// The pins are of event lines that were compared with the recorded files, read a second time, when they were made.
func TestRecordedAccountsAreReadAsRecorded(t *testing.T) {
	type counts struct{ accounts, tokens, mints int }
	for pattern, want := range map[string]struct {
		counts counts
		hash   string
	}{
		"accounts/mainnet-genesis.accounts.json":            {counts{431, 0, 0}, "aebcebdcaa770d31"},
		"accounts/account-updates.json":                     {counts{84, 13, 24}, "e392d994cf79bc53"},
		"accounts/vixen/*":                                  {counts{4, 0, 2}, "93f20490d24b119f"},
		"vectors/kit-accounts/*":                            {counts{18, 4, 9}, "9b7a0e25fd1c773a"},
		"rpc/http/Accounts/GetProgramAccountsResponse.json": {counts{2, 0, 0}, "f5222377d30c33c3"},
	} {
		var lines string
		var got counts
		for _, path := range recorded(t, pattern) {
			for _, state := range bases(t, path) {
				lines += string(AppendEventLine(nil, state))
				for _, w := range state.Accounts {
					got.accounts++
					if w.Token != nil {
						got.tokens++
					}
					if w.Mint != nil {
						got.mints++
					}
				}
			}
		}
		if hash := fmt.Sprintf("%x", sha256.Sum256([]byte(lines)))[:16]; hash != want.hash || got != want.counts {
			t.Errorf("%s: %+v, hash %s, want %+v of\n%s", pattern, got, hash, want, lines)
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
