package rpc

import (
	"encoding/binary"
	"math"
	"strconv"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
)

// Lengths of the base layouts of the token programs, and where in them lies what no fact tells, see ledger.ParseTokenData.
const (
	tokenAccountBytes = 165
	mintBytes         = 82
	nativeAt          = 109 // a tag and the reserve of a native token account
	mintAuthorityAt   = 0   // a tag and a key
	freezeAuthorityAt = 46
)

// appendParsed appends the facts of a token account or a mint. Extensions are not held. What only the data tells is left out where that is not
// kept: the authorities of a mint, and the reserve of a native account.
func appendParsed(dst []byte, a *ledger.Account, known facts) (_ []byte, err error) {
	space, spaceKnown := spaceOf(a, known.own)
	if !spaceKnown {
		return dst, elsewhere(codeExcluded, "the length of account %s is not known here: it takes --data of its program", a.Pubkey)
	}
	dst = append(append(dst, `{"program":"`...), programName(a.Owner)...)
	dst = encode.AppendNumber(dst, `","space":`, space)
	dst = append(dst, `,"parsed":{"type":"`...)
	if a.Token != nil {
		dst, err = appendTokenInfo(append(dst, `account","info":`...), a, known.held)
	} else {
		dst, err = appendMintInfo(append(dst, `mint","info":`...), a, known.own)
	}
	return append(dst, `}}`...), err
}

// appendTokenInfo appends the facts of a token account.
func appendTokenInfo(dst []byte, a *ledger.Account, mint *ledger.Mint) ([]byte, error) {
	t := a.Token
	if mint == nil || !t.Details.Known {
		return dst, elsewhere(codeExcluded, "the source has not shown all of token account %s and its mint", a.Pubkey)
	}
	d := &t.Details.Value
	dst = encode.AppendKey(dst, `{"mint":`, &t.Mint)
	dst = encode.AppendKey(dst, `,"owner":`, &t.Owner)
	dst = appendAmount(append(dst, `,"tokenAmount":`...), t.Amount, mint)
	state := `,"state":"initialized","isNative":`
	if d.State == ledger.TokenFrozen {
		state = `,"state":"frozen","isNative":`
	}
	dst = strconv.AppendBool(append(dst, state...), t.IsNative())
	if data := a.Data.Bytes(); t.IsNative() && len(data) >= tokenAccountBytes && data[nativeAt] == 1 {
		dst = appendAmount(append(dst, `,"rentExemptReserve":`...), binary.LittleEndian.Uint64(data[nativeAt+4:]), mint)
	}
	if d.Delegate.Known {
		dst = encode.AppendKey(dst, `,"delegate":`, &d.Delegate.Value)
		dst = appendAmount(append(dst, `,"delegatedAmount":`...), d.DelegatedAmount, mint)
	}
	if d.CloseAuthority.Known {
		dst = encode.AppendKey(dst, `,"closeAuthority":`, &d.CloseAuthority.Value)
	}
	return append(dst, '}'), nil
}

// appendMintInfo appends the facts of a mint.
func appendMintInfo(dst []byte, a *ledger.Account, m *ledger.Mint) ([]byte, error) {
	if !m.Supply.Known {
		return dst, elsewhere(codeExcluded, "the source has not shown the supply of mint %s", a.Pubkey)
	}
	dst = encode.AppendNumber(dst, `{"decimals":`, m.Decimals)
	dst = encode.AppendNumber(dst, `,"supply":"`, m.Supply.Value)
	dst = append(dst, `","isInitialized":true`...)
	if data := a.Data.Bytes(); len(data) >= mintBytes {
		dst = appendAuthority(append(dst, `,"mintAuthority":`...), data[mintAuthorityAt:])
		dst = appendAuthority(append(dst, `,"freezeAuthority":`...), data[freezeAuthorityAt:])
	}
	return append(dst, '}'), nil
}

// appendAuthority appends a key behind its tag, or null.
func appendAuthority(dst, data []byte) []byte {
	if binary.LittleEndian.Uint32(data) != 1 {
		return append(dst, `null`...)
	}
	return encode.AppendKey(dst, "", (*ledger.Pubkey)(data[4:36]))
}

// appendAmount appends an amount of tokens. The floating-point number is inexact by nature, and null where no such number exists: for as many decimals
// as 64 bits have no power of ten, and where the mint shows its amounts scaled, which the node does not.
func appendAmount(dst []byte, amount uint64, mint *ledger.Mint) []byte {
	return append(appendAmountFields(append(dst, '{'), amount, mint), '}')
}

func appendAmountFields(dst []byte, amount uint64, mint *ledger.Mint) []byte {
	const mostPowers = 19 // 10^19 is the highest below 2^64
	dst = encode.AppendNumber(dst, `"amount":"`, amount)
	dst = encode.AppendNumber(dst, `","decimals":`, mint.Decimals)
	if mint.Decimals > mostPowers || mint.Scaled.Value {
		dst = append(dst, `,"uiAmount":null`...)
	} else {
		dst = strconv.AppendFloat(append(dst, `,"uiAmount":`...), float64(amount)/math.Pow10(int(mint.Decimals)), 'g', -1, 64)
	}
	if !mint.Scaled.Value {
		dst = append(ledger.AppendUIAmount(append(dst, `,"uiAmountString":"`...), amount, mint.Decimals), '"')
	}
	return dst
}

// appendSeconds appends the time of a block, in Unix seconds.
func appendSeconds(dst []byte, t int64) []byte { return strconv.AppendInt(dst, t, 10) }
