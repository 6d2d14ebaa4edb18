package sim

import (
	"crypto/sha256"
	"encoding/binary"

	"ledgerd/engine/ledger"
)

// poolTag is how the data of a pool begins: as programs of the framework Anchor mark their accounts, of which bots look for pools.
var poolTag = sha256.Sum256([]byte("account:Pool"))

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
		return packed(poolTag[:8], w.keys[w.mintOf(a)][:], w.keys[w.mintOf(b)][:], w.keys[a][:], w.keys[b][:],
			w.cells[a].amount, w.cells[b].amount, uint64(swapFee)), true
	}
	return nil, false
}

// packed returns values one after the other, little endian.
func packed(values ...any) (b []byte) {
	for _, v := range values {
		var err error
		if b, err = binary.Append(b, binary.LittleEndian, v); err != nil {
			panic(err) // a type without a fixed size
		}
	}
	return b
}

func (w *world) holdingData(r ref) []byte {
	c, mint := &w.cells[r], w.mintOf(r)
	details := w.details(r, mint)
	native, reserve := uint32(0), uint64(0)
	if mint == w.mints.first {
		native, reserve = 1, w.rentOf(r)
	}
	b := packed(w.keys[mint][:], w.keys[w.ownerOf(r)][:], c.amount, optionalKey(details.Delegate), details.State,
		native, reserve, details.DelegatedAmount, optionalKey(details.CloseAuthority))
	if w.programOf(mint) == token2022Program {
		b = packed(b, byte(2), extension{immutableOwner, 0}) // an account
	}
	return b
}

func (w *world) mintData(r ref) []byte {
	var authority ledger.Opt[ledger.Pubkey] // of wrapped lamports there is none
	if r != w.mints.first {
		authority = ledger.Some(w.keys[w.issuerOf(r)])
	}
	key := optionalKey(authority) // to mint, and to freeze
	b, isMint := packed(key, w.cells[r].amount, w.decimalsOf(r), true, key), append(make([]byte, holdingBytes-mintBytes), 1)
	switch {
	case w.collectibleMints.has(r):
		return packed(b, isMint, extension{mintCloseAuthority, 32}, authority.Value)
	case w.isScaled(r):
		return packed(b, isMint, extension{scaledUIAmount, 56}, authority.Value, float64(1), int64(0), float64(1))
	}
	return b
}

// extension is how an extension of Token-2022 begins, which make an account as long as its rent says: its kind, and the length of what
// follows.
type extension struct{ Kind, Bytes uint16 }

const (
	mintCloseAuthority = 3 // the key
	immutableOwner     = 7
	scaledUIAmount     = 25 // authority, multiplier, new multiplier's time, new multiplier
)

func optionalKey(k ledger.Opt[ledger.Pubkey]) []byte {
	return packed(uint32(flag(k.Known)), k.Value)
}
