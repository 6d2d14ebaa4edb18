package stream

import (
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
	wallet := mustKey(t, "9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin")
	full := ledger.Account{
		Pubkey: wallet, Lamports: 18446744073709551615, Owner: ledger.TokenProgram, Executable: true, Known: ledger.FieldsAll,
	}
	lamportsOnly := ledger.Account{Pubkey: ledger.NativeMint, Lamports: 5000}
	systemOwned := ledger.Account{Pubkey: wallet, Lamports: 1, Known: ledger.FieldOwner}
	at := ledger.Some[int64](1770294896)
	tests := map[string]struct {
		account  ledger.Account
		at       ledger.Opt[int64]
		level    ledger.Commitment
		basic    string
		extended string // after the basic fields
	}{
		"everything known, largest numbers": {
			full, at, ledger.Finalized,
			`{"type":"account_update","pubkey":"9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin","lamports":18446744073709551615,"timestamp":"2026-02-05T12:34:56Z"`,
			`,"slot":18446744073709551615,"seq":18446744073709551615,"owner":"TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA","executable":true,"commitment":"finalized"}`,
		},
		"only lamports known": {
			lamportsOnly, at, ledger.Processed,
			`{"type":"account_update","pubkey":"So11111111111111111111111111111111111111112","lamports":5000,"timestamp":"2026-02-05T12:34:56Z"`,
			`,"slot":18446744073709551615,"seq":18446744073709551615,"owner":"","executable":false,"commitment":"processed"}`,
		},
		"owned by the system program": {
			systemOwned, at, ledger.Confirmed,
			`{"type":"account_update","pubkey":"9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin","lamports":1,"timestamp":"2026-02-05T12:34:56Z"`,
			`,"slot":18446744073709551615,"seq":18446744073709551615,"owner":"11111111111111111111111111111111","executable":false,"commitment":"confirmed"}`,
		},
		"a block without time": {
			lamportsOnly, ledger.Opt[int64]{}, ledger.Processed,
			`{"type":"account_update","pubkey":"So11111111111111111111111111111111111111112","lamports":5000,"timestamp":null`,
			`,"slot":18446744073709551615,"seq":18446744073709551615,"owner":"","executable":false,"commitment":"processed"}`,
		},
		"the first second": {
			lamportsOnly, ledger.Some[int64](0), ledger.Processed,
			`{"type":"account_update","pubkey":"So11111111111111111111111111111111111111112","lamports":5000,"timestamp":"1970-01-01T00:00:00Z"`,
			`,"slot":18446744073709551615,"seq":18446744073709551615,"owner":"","executable":false,"commitment":"processed"}`,
		},
		"closed": {
			ledger.Account{Pubkey: ledger.SystemProgram}, at, ledger.Processed,
			`{"type":"account_update","pubkey":"11111111111111111111111111111111","lamports":0,"timestamp":"2026-02-05T12:34:56Z"`,
			`,"slot":18446744073709551615,"seq":18446744073709551615,"owner":"","executable":false,"commitment":"processed"}`,
		},
	}
	for name, tt := range tests {
		const most = 1<<64 - 1
		for f, want := range map[form]string{basic: tt.basic + "}", extended: tt.basic + tt.extended} {
			got := payloadOf(appendUpdate(nil, f, &tt.account, tt.at, most, most, tt.level))
			if got != want {
				t.Errorf("%s, form %d:\n got %s\nwant %s", name, f, got, want)
			}
			if len(got)+4 > maxFrameBytes {
				t.Errorf("%s: a frame of %d bytes, want at most %d", name, len(got)+4, maxFrameBytes)
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
