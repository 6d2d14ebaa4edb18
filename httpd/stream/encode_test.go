package stream

import (
	"math"
	"testing"

	"ledgerd/engine/ledger"
)

func mustKey(t *testing.T, text string) ledger.Pubkey {
	t.Helper()
	k, err := ledger.ParsePubkey(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestUpdatesAreWrittenToTheLetter(t *testing.T) {
	const walletText = "9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin"
	wallet := mustKey(t, walletText)
	var top ledger.Pubkey // whose text is the longest
	for i := range top {
		top[i] = 0xff
	}
	topText := top.String()
	full := ledger.Account{Pubkey: wallet, Lamports: math.MaxUint64, Owner: ledger.TokenProgram, Executable: true, Known: ledger.FieldsAll}
	lamportsOnly := ledger.Account{Pubkey: ledger.NativeMint, Lamports: 5000}
	systemOwned := ledger.Account{Pubkey: wallet, Lamports: 1, Known: ledger.FieldOwner}
	closed := ledger.Account{Pubkey: ledger.SystemProgram}
	longest := ledger.Account{
		Pubkey: top, Owner: top, Lamports: math.MaxUint64, Known: ledger.FieldsAll,
		Token: &ledger.TokenAccount{Mint: top, Owner: top, Amount: math.MaxUint64},
	}
	noon, first, never, end := ledger.Some[int64](1770294896), ledger.Some[int64](0), ledger.Opt[int64]{}, ledger.Some[int64](math.MaxInt64)
	const most = 1<<64 - 1
	const native = `{"type":"account_update","pubkey":"So11111111111111111111111111111111111111112","lamports":5000,"timestamp":`
	const numbers = `,"slot":18446744073709551615,"seq":18446744073709551615,"owner":`
	tests := []struct {
		account ledger.Account
		at      ledger.Opt[int64]
		level   ledger.Commitment

		basic, extended, token string // what each form adds
	}{
		{full, noon, ledger.Finalized, `{"type":"account_update","pubkey":"` + walletText + `","lamports":18446744073709551615,"timestamp":"2026-02-05T12:34:56Z"`,
			`"TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA","executable":true,"commitment":"finalized"`, `null`},
		{lamportsOnly, noon, ledger.Processed, native + `"2026-02-05T12:34:56Z"`, `"","executable":false,"commitment":"processed"`, `null`},
		{lamportsOnly, never, ledger.Processed, native + `null`, `"","executable":false,"commitment":"processed"`, `null`},
		{lamportsOnly, first, ledger.Processed, native + `"1970-01-01T00:00:00Z"`, `"","executable":false,"commitment":"processed"`, `null`},
		{systemOwned, noon, ledger.Confirmed, `{"type":"account_update","pubkey":"` + walletText + `","lamports":1,"timestamp":"2026-02-05T12:34:56Z"`,
			`"11111111111111111111111111111111","executable":false,"commitment":"confirmed"`, `null`},
		{closed, noon, ledger.Processed, `{"type":"account_update","pubkey":"11111111111111111111111111111111","lamports":0,"timestamp":"2026-02-05T12:34:56Z"`,
			`"","executable":false,"commitment":"processed"`, `null`},
		{longest, end, ledger.Confirmed, `{"type":"account_update","pubkey":"` + topText + `","lamports":18446744073709551615,"timestamp":"292277026596-12-04T15:30:07Z"`,
			`"` + topText + `","executable":false,"commitment":"confirmed"`,
			`{"mint":"` + topText + `","owner":"` + topText + `","amount":"18446744073709551615","decimals":255}`},
	}
	for _, tt := range tests {
		extends := tt.basic + numbers + tt.extended
		for f, want := range map[form]string{basic: tt.basic + "}", extended: extends + "}", withTokens: extends + `,"token":` + tt.token + "}"} {
			got := payloadOf(appendUpdate(nil, f, &tt.account, ledger.Some[uint8](255), tt.at, most, most, tt.level))
			if got != want {
				t.Errorf("form %d:\n got %s\nwant %s", f, got, want)
			}
			if len(got)+4 > maxFrameBytes {
				t.Errorf("a frame of %d bytes, want at most %d: %s", len(got)+4, maxFrameBytes, got)
			}
		}
	}
}

// payloadOf returns what is in a text frame.
func payloadOf(frame []byte) string {
	if frame[1] == 126 {
		return string(frame[4:])
	}
	return string(frame[2:])
}
