package ledger

import (
	"encoding/binary"
	"slices"
)

// Layouts of the SPL token programs, little endian. An optional key is a u32 tag, 0 or 1,
// and 32 bytes. Both programs agree on the base; Token-2022 may add extensions.
//
//	account, 165 bytes                       mint, 82 bytes
//	  0  mint              32                  0  mint authority    4+32
//	 32  owner             32                 36  supply            u64
//	 64  amount            u64                44  decimals          u8
//	 72  delegate          4+32               45  initialized       u8, 0 or 1
//	108  state             u8, 0 to 2         46  freeze authority  4+32
//	109  native reserve    4+u64
//	121  delegated amount  u64
//	129  close authority   4+32
//
// Extended, both kinds alike: the base, zeros up to byte 165, the kind (1 mint, 2 account)
// at byte 165, then extensions: type u16, length u16, value. Type 0 ends them.
//
// Sources: spl-token state.rs; spl-token-2022 extension/mod.rs.
const (
	tokenAccountBytes = 165
	mintBytes         = 82
	// multisigBytes is the size of a multisig and of nothing else: Token-2022 pads an
	// extended account that would have it.
	multisigBytes = 355

	extendedMint    = 1 // at byte tokenAccountBytes
	extendedAccount = 2

	extensionInterestBearing = 10
	extensionScaledUIAmount  = 25
)

// ParseTokenData returns the token facts of an account owned by program, read from its
// whole data. At most one of the two is not nil; both are nil where the program is none
// of the token programs and where the data is neither an initialized token account nor an
// initialized mint: another size, a multisig, a tag or state that the programs never
// write.
//
// Malformed extensions do not invalidate the base: the token programs still read it, and so does
// this function. Whether the mint scales its amounts is then unknown, unless an extension before the
// malformed one says so.
func ParseTokenData(program Pubkey, data []byte) (*TokenAccount, *Mint) {
	switch size := len(data); {
	case !IsTokenProgram(program):
	case size == tokenAccountBytes:
		return parseTokenAccount(data), nil
	case size == mintBytes:
		return nil, parseMint(data, nil)
	case program == TokenProgram || size < tokenAccountBytes || size == multisigBytes: // no extensions
	case data[tokenAccountBytes] == extendedAccount:
		return parseTokenAccount(data), nil
	case data[tokenAccountBytes] == extendedMint && isZero(data[mintBytes:tokenAccountBytes]):
		return nil, parseMint(data, data[tokenAccountBytes+1:])
	}
	return nil, nil
}

func isZero(b []byte) bool { return !slices.ContainsFunc(b, func(v byte) bool { return v != 0 }) }

// SetTokenFacts sets the token and mint facts of the write from its owner, which must be
// known, and the whole data of the account.
func (w *AccountWrite) SetTokenFacts(data []byte) {
	w.Token, w.Mint = ParseTokenData(w.Owner, data)
	w.TokenOwnerUnknown = false
	w.Known |= FieldToken | FieldMint
}

// parseTokenAccount reads the base of a token account, nil if it is not initialized.
func parseTokenAccount(b []byte) *TokenAccount {
	state := TokenState(b[108])
	delegate, ok1 := parseOptionalKey(b[72:108])
	closer, ok2 := parseOptionalKey(b[129:165])
	native := binary.LittleEndian.Uint32(b[109:])
	if !ok1 || !ok2 || native > 1 || (state != TokenInitialized && state != TokenFrozen) {
		return nil
	}
	return &TokenAccount{
		Mint:   Pubkey(b[0:32]),
		Owner:  Pubkey(b[32:64]),
		Amount: binary.LittleEndian.Uint64(b[64:]),
		Details: Some(TokenDetails{
			State:           state,
			Delegate:        delegate,
			DelegatedAmount: binary.LittleEndian.Uint64(b[121:]),
			CloseAuthority:  closer,
		}),
	}
}

// parseMint reads the base of a mint, nil if it is not initialized.
func parseMint(b, extensions []byte) *Mint {
	_, ok1 := parseOptionalKey(b[0:36])
	_, ok2 := parseOptionalKey(b[46:82])
	if !ok1 || !ok2 || b[45] != 1 {
		return nil
	}
	return &Mint{
		Decimals: b[44],
		Supply:   Some(binary.LittleEndian.Uint64(b[36:])),
		Scaled:   parseScaled(extensions),
	}
}

// parseOptionalKey reads a tag and a key. It is not ok where the tag is neither 0 nor 1.
func parseOptionalKey(b []byte) (key Opt[Pubkey], ok bool) {
	switch binary.LittleEndian.Uint32(b) {
	case 0:
		return Opt[Pubkey]{}, true
	case 1:
		return Some(Pubkey(b[4:36])), true
	}
	return Opt[Pubkey]{}, false
}

// parseScaled reports whether one of the extensions scales the amounts of their mint. That is unknown if an extension
// reaches beyond the end before one that scales. One trailing byte is valid: growing an account leaves one.
func parseScaled(b []byte) Opt[bool] {
	for len(b) >= 2 {
		kind := binary.LittleEndian.Uint16(b)
		if kind == 0 {
			break
		}
		if len(b) < 4 {
			return Opt[bool]{}
		}
		size := int(binary.LittleEndian.Uint16(b[2:]))
		if b = b[4:]; size > len(b) {
			return Opt[bool]{}
		}
		if kind == extensionInterestBearing || kind == extensionScaledUIAmount {
			return Some(true)
		}
		b = b[size:]
	}
	return Some(false)
}
