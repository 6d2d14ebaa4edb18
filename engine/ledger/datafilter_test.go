package ledger

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/base58"
)

func TestPartsOfDataAreBase58OfBoundedLength(t *testing.T) {
	long := slices.Repeat([]byte{255}, MaxPartBytes+1)
	encoded := func(b []byte) string { return string(base58.Append(nil, b)) }
	for text, want := range map[string][]byte{
		"":                                  nil,
		"0":                                 nil,
		"2 ":                                nil,
		"1":                                 {0},
		"2":                                 {1},
		"111":                               {0, 0, 0},
		encoded(long[1:]):                   long[1:],
		encoded(long):                       nil,
		strings.Repeat("1", MaxPartBytes):   make([]byte, MaxPartBytes),
		strings.Repeat("1", MaxPartBytes+1): nil,
		strings.Repeat("1", 1<<20):          nil,
	} {
		p, ok := ParseDataPart(7, text)
		if ok != (want != nil) || ok && (p.Offset != 7 || !bytes.Equal(p.Bytes, want)) {
			t.Errorf("ParseDataPart(7, %.20q…): %v, %t, want %v", text, p, ok, want)
		}
	}
}
