package encode

import (
	"encoding/base64"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
)

// FuzzCursor checks that what is accepted is what would be made, and nothing else.
func FuzzCursor(f *testing.F) {
	wallet, last := ledger.Pubkey{4, 31: 4}, ledger.Pubkey{7, 31: 7}
	f.Add(string(AppendCursor(nil, Tokens, &wallet, &last)))
	f.Add(string(AppendCursor(nil, Members, &wallet, &last)))
	f.Add(base64.StdEncoding.EncodeToString(make([]byte, 65)))
	f.Add(strings.Repeat("_", 87))
	f.Fuzz(func(t *testing.T, cursor string) {
		after, ok := ParseCursor([]byte(cursor), Tokens, &wallet)
		if ok && (!after.Known || string(AppendCursor(nil, Tokens, &wallet, &after.Value)) != cursor) {
			t.Errorf("%q is accepted but means another cursor", cursor)
		}
	})
}
