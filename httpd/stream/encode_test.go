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
	full := ledger.Account{Pubkey: wallet, Lamports: 1<<64 - 1, Owner: ledger.TokenProgram, Executable: true, Known: ledger.FieldsAll}
	lamportsOnly := ledger.Account{Pubkey: ledger.NativeMint, Lamports: 5000}
	systemOwned := ledger.Account{Pubkey: wallet, Lamports: 1, Known: ledger.FieldOwner}
	closed := ledger.Account{Pubkey: ledger.SystemProgram}
	const (
		walletText = "9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin"
		mintText   = "So11111111111111111111111111111111111111112"
		systemText = "11111111111111111111111111111111"
		tokenText  = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"
		largest    = "18446744073709551615"
	)
	noon, first, never := ledger.Some[int64](1770294896), ledger.Some[int64](0), ledger.Opt[int64]{}
	tests := []struct {
		account ledger.Account
		at      ledger.Opt[int64]
		level   ledger.Commitment

		pubkey, lamports, timestamp, owner, executable, commitment string // as they are written
	}{
		{full, noon, ledger.Finalized, walletText, largest, `"2026-02-05T12:34:56Z"`, tokenText, "true", "finalized"},
		{lamportsOnly, noon, ledger.Processed, mintText, "5000", `"2026-02-05T12:34:56Z"`, "", "false", "processed"},
		{lamportsOnly, never, ledger.Processed, mintText, "5000", "null", "", "false", "processed"},
		{lamportsOnly, first, ledger.Processed, mintText, "5000", `"1970-01-01T00:00:00Z"`, "", "false", "processed"},
		{systemOwned, noon, ledger.Confirmed, walletText, "1", `"2026-02-05T12:34:56Z"`, systemText, "false", "confirmed"},
		{closed, noon, ledger.Processed, systemText, "0", `"2026-02-05T12:34:56Z"`, "", "false", "processed"},
	}
	for _, tt := range tests {
		fields := `{"type":"account_update","pubkey":"` + tt.pubkey + `","lamports":` + tt.lamports + `,"timestamp":` + tt.timestamp
		more := `,"slot":18446744073709551615,"seq":18446744073709551615,"owner":"` + tt.owner + `","executable":` + tt.executable +
			`,"commitment":"` + tt.commitment + `"`
		const most = 1<<64 - 1
		for f, want := range map[form]string{basic: fields + "}", extended: fields + more + "}"} {
			got := payloadOf(appendUpdate(nil, f, &tt.account, ledger.Opt[uint8]{}, tt.at, most, most, tt.level))
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
