package sim

import (
	"crypto/sha256"
	"encoding/binary"

	"ledgerd/engine/ledger"
)

// poolTag is how the data of a pool begins: as programs of the framework Anchor mark their accounts, of which bots look for pools.
var poolTag = sha256.Sum256([]byte("account:Pool"))

// Extensions of Token-2022 that make an account as long as its rent says.
const (
	extensionMintCloseAuthority = 3 // the key, 32
	extensionImmutableOwner     = 7
	extensionScaledUIAmount     = 25 // authority 32, multiplier f64, new multiplier's time i64, new multiplier f64
)

// data returns the data of an account, for those of which there is any to tell: holdings and mints, as ledger.ParseTokenData reads them, pools, and
// wallets, which have none. A pool is, little endian:
//
//	tag 8, mint a 32, mint b 32, vault a 32, vault b 32, reserve a u64, reserve b u64, fee u64 in ten-thousandths
func (w *world) data(r ref) (data []byte, known bool) {
	switch {
	case w.isWallet(r):
		return nil, true
	case w.isHolding(r):
		return w.holdingData(r), true
	case w.isMint(r):
		return w.mintData(r), true
	case w.pools.has(r):
		a, b := w.vaultsOf(r)
		data = append(data, poolTag[:8]...)
		for _, account := range [...]ref{w.mintOf(a), w.mintOf(b), a, b} {
			data = append(data, w.keys[account][:]...)
		}
		for _, number := range [...]uint64{w.cells[a].amount, w.cells[b].amount, swapFee} {
			data = binary.LittleEndian.AppendUint64(data, number)
		}
		return data, true
	}
	return nil, false
}

func (w *world) holdingData(r ref) []byte {
	c, mint := &w.cells[r], w.mintOf(r)
	details := w.details(r, mint)
	b := append([]byte(nil), w.keys[mint][:]...)
	b = append(b, w.keys[w.ownerOf(r)][:]...)
	b = binary.LittleEndian.AppendUint64(b, c.amount)
	b = appendOptionalKey(b, details.Delegate)
	b = append(b, byte(details.State))
	native, reserve := uint32(0), uint64(0)
	if mint == w.mints.first {
		native, reserve = 1, w.rentOf(r)
	}
	b = binary.LittleEndian.AppendUint32(b, native)
	b = binary.LittleEndian.AppendUint64(b, reserve)
	b = binary.LittleEndian.AppendUint64(b, details.DelegatedAmount)
	b = appendOptionalKey(b, details.CloseAuthority)
	if w.programOf(mint) == token2022Program {
		b = append(b, 2) // an account
		b = appendExtension(b, extensionImmutableOwner)
	}
	return b
}

func (w *world) mintData(r ref) []byte {
	var authority ledger.Opt[ledger.Pubkey] // of wrapped lamports there is none
	if r != w.mints.first {
		authority = ledger.Some(w.keys[w.issuerOf(r)])
	}
	b := appendOptionalKey(nil, authority)
	b = binary.LittleEndian.AppendUint64(b, w.cells[r].amount)
	b = append(b, w.decimalsOf(r), 1)
	b = appendOptionalKey(b, authority) // to freeze
	closes := w.collectibleMints.has(r)
	if closes || w.isScaled(r) {
		b = append(b, make([]byte, holdingBytes-len(b))...)
		b = append(b, 1) // a mint
	}
	one := binary.LittleEndian.AppendUint64(nil, 0x3ff0000000000000) // 1.0
	switch {
	case closes:
		return appendExtension(b, extensionMintCloseAuthority, authority.Value[:])
	case w.isScaled(r):
		return appendExtension(b, extensionScaledUIAmount, authority.Value[:], one, make([]byte, 8), one)
	}
	return b
}

func appendOptionalKey(b []byte, k ledger.Opt[ledger.Pubkey]) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(flag(k.Known)))
	return append(b, k.Value[:]...)
}

func appendExtension(b []byte, kind uint16, fields ...[]byte) []byte {
	size := 0
	for _, f := range fields {
		size += len(f)
	}
	b = binary.LittleEndian.AppendUint16(b, kind)
	b = binary.LittleEndian.AppendUint16(b, uint16(size))
	for _, f := range fields {
		b = append(b, f...)
	}
	return b
}
