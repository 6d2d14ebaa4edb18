package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
)

// StateHash is the order-independent sum, modulo 2^256, of the SHA-256 of every live
// account and mint fact. Tombstones and provenance are outside it.
// It is kept incrementally: each write adds the term of the new state and subtracts that of the old one.
type StateHash [4]uint64

// Add adds one term, or the sum of a shard.
func (h *StateHash) Add(t StateHash) {
	var c uint64
	for i := range h {
		h[i], c = bits.Add64(h[i], t[i], c)
	}
}

// Sub subtracts one term.
func (h *StateHash) Sub(t StateHash) {
	var b uint64
	for i := range h {
		h[i], b = bits.Sub64(h[i], t[i], b)
	}
}

// String returns the hash as 64 hexadecimal digits, most significant first.
func (h StateHash) String() string {
	return fmt.Sprintf("%016x%016x%016x%016x", h[3], h[2], h[1], h[0])
}

// The first byte of every hashed term, so that no account can be taken for a mint.
const (
	accountTerm = 1
	mintTerm    = 2
)

// StateTerm returns the term of the account; that of a tombstone, and of nil, is zero.
//
// The hashed bytes, little endian: tag 1, pubkey 32, lamports u64, known shown fields u8,
// owner 32, executable u8, rent epoch u64; with token facts then: mint 32, owner 32,
// amount u64, details known u8, and with details: state u8, delegate u8+32,
// delegated amount u64, close authority u8+32. Where the data is known, its SHA-256 follows; each of these parts has another length.
func (a *Account) StateTerm() StateHash {
	if a == nil || !a.Exists() {
		return StateHash{}
	}
	var buf [288]byte
	b := append(buf[:0], accountTerm)
	b = append(b, a.Pubkey[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(a.Lamports))
	b = append(b, byte(a.Known&FieldsShown))
	b = append(b, a.Owner[:]...)
	b = append(b, oneIf(a.Executable))
	b = binary.LittleEndian.AppendUint64(b, a.RentEpoch)
	if t := a.Token; t != nil {
		b = append(b, t.Mint[:]...)
		b = append(b, t.Owner[:]...)
		b = binary.LittleEndian.AppendUint64(b, t.Amount)
		b = append(b, oneIf(t.Details.Known))
		if t.Details.Known {
			d := &t.Details.Value
			b = append(b, byte(d.State))
			b = appendOptKey(b, d.Delegate)
			b = binary.LittleEndian.AppendUint64(b, d.DelegatedAmount)
			b = appendOptKey(b, d.CloseAuthority)
		}
	}
	if a.Known&FieldData != 0 {
		hash := a.Data.Hash()
		b = append(b, hash[:]...)
	}
	return term(b)
}

// StateTerm returns the term of the mint facts held under key.
//
// The hashed bytes, little endian: tag 2, mint 32, decimals u8, supply u8+u64, scaled u8+u8.
func (m *Mint) StateTerm(key Pubkey) StateHash {
	var buf [64]byte
	b := append(buf[:0], mintTerm)
	b = append(b, key[:]...)
	b = append(b, m.Decimals, oneIf(m.Supply.Known))
	b = binary.LittleEndian.AppendUint64(b, m.Supply.Value)
	b = append(b, oneIf(m.Scaled.Known), oneIf(m.Scaled.Value))
	return term(b)
}

func term(b []byte) StateHash {
	sum := sha256.Sum256(b)
	var h StateHash
	for i := range h {
		h[i] = binary.LittleEndian.Uint64(sum[i*8:])
	}
	return h
}

func appendOptKey(b []byte, k Opt[Pubkey]) []byte {
	b = append(b, oneIf(k.Known))
	return append(b, k.Value[:]...)
}

func oneIf(v bool) byte {
	if v {
		return 1
	}
	return 0
}
