package agavetest

import "ledgerd/engine/ledger"

// TokenData returns the data of a token account with the facts given, whose details must be known.
func TokenData(t *ledger.TokenAccount) []byte {
	d := &t.Details.Value
	// The 12 bytes would say whether it is native, as its mint does.
	return put(nil, t.Mint, t.Owner, t.Amount, option(d.Delegate), d.State, [12]byte{}, d.DelegatedAmount, option(d.CloseAuthority))
}

// MintData returns the data of a mint with the facts given; one that scales its amounts is of
// Token-2022.
func MintData(m *ledger.Mint) []byte {
	b := put(nil, [36]byte{}, m.Supply.Value, m.Decimals, true, [36]byte{})
	if m.Scaled.Value {
		b = put(b, [165 - 82]byte{}, byte(1), uint16(25), uint16(0)) // kind, and an extension without a value
	}
	return b
}

// option returns a key that may be none.
func option(k ledger.Opt[ledger.Pubkey]) []byte {
	if !k.Known {
		return make([]byte, 4+len(k.Value))
	}
	return put(nil, uint32(1), k.Value)
}
