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
	for text, want := range map[string][]byte{
		"":                                  nil,
		"0":                                 nil,
		"2 ":                                nil,
		"1":                                 {0},
		"2":                                 {1},
		"111":                               {0, 0, 0},
		encodePlainly(long[1:]):             long[1:],
		encodePlainly(long):                 nil,
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

// encodePlainly is base58 by division, for any length.
func encodePlainly(b []byte) (text string) {
	const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	rest := slices.Clone(b)
	for slices.ContainsFunc(rest, func(v byte) bool { return v != 0 }) {
		carry := 0
		for i, v := range rest {
			carry = carry<<8 | int(v)
			rest[i], carry = byte(carry/58), carry%58
		}
		text = alphabet[carry:carry+1] + text
	}
	if back, err := base58.Decode(text); err != nil || !bytes.Equal(back, b) {
		panic("the text stands for other bytes")
	}
	return text
}
