package agavetest

import (
	"encoding/binary"

	"ledgerd/engine/ledger"
)

// TokenData returns the data of a token account with the facts given, whose details must be known.
func TokenData(t *ledger.TokenAccount) []byte {
	b, d := make([]byte, 165), &t.Details.Value
	copy(b, t.Mint[:])
	copy(b[32:], t.Owner[:])
	binary.LittleEndian.PutUint64(b[64:], t.Amount)
	putKey(b[72:], d.Delegate)
	b[108] = byte(d.State)
	binary.LittleEndian.PutUint64(b[121:], d.DelegatedAmount)
	putKey(b[129:], d.CloseAuthority)
	return b
}

// MintData returns the data of a mint with the facts given; one that scales its amounts is of
// Token-2022.
func MintData(m *ledger.Mint) []byte {
	b := make([]byte, 82)
	binary.LittleEndian.PutUint64(b[36:], m.Supply.Value)
	b[44], b[45] = m.Decimals, 1
	if !m.Scaled.Value {
		return b
	}
	b = append(b, make([]byte, 165-82)...)
	return append(b, 1, 25, 0, 0, 0) // kind, and an extension without a value
}

func putKey(b []byte, k ledger.Opt[ledger.Pubkey]) {
	if k.Known {
		b[0] = 1
		copy(b[4:], k.Value[:])
	}
}
