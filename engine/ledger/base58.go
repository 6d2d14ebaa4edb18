package ledger

import (
	"errors"
	"fmt"
)

// Keys, hashes and signatures are written in base58 with the Bitcoin alphabet: the bytes
// are one big-endian number, and each leading zero byte is one leading '1'.
const (
	text32Min, text32Max = 32, 44 // how many characters 32 bytes may take
	text64Min, text64Max = 64, 88
)

var (
	// ErrBase58 says that a text is not the base58 of a key, a hash or a signature.
	// Every error of ParsePubkey, ParseHash and ParseSignature matches it, and none
	// repeats what was parsed.
	ErrBase58 = errors.New("not valid base58")

	errBase58Length    = fmt.Errorf("%w: wrong length", ErrBase58)
	errBase58Character = fmt.Errorf("%w: invalid character", ErrBase58)
	errBase58Range     = fmt.Errorf("%w: wrong number of bytes", ErrBase58)
)

// ParsePubkey reads a pubkey: 32 to 44 characters that are the base58 of exactly 32 bytes.
func ParsePubkey[T string | []byte](s T) (k Pubkey, err error) {
	err = decode58x32((*[32]byte)(&k), s)
	return k, err
}

// ParseHash reads a block hash: 32 to 44 characters that are the base58 of exactly 32 bytes.
func ParseHash[T string | []byte](s T) (h Hash, err error) {
	err = decode58x32((*[32]byte)(&h), s)
	return h, err
}

// ParseSignature reads a signature: 64 to 88 characters that are the base58 of exactly
// 64 bytes.
func ParseSignature[T string | []byte](s T) (sig Signature, err error) {
	err = decode58x64((*[64]byte)(&sig), s)
	return sig, err
}

// AppendBase58 appends the base58 of the key, at most 44 bytes, without allocating.
func (k *Pubkey) AppendBase58(dst []byte) []byte { return append58x32(dst, (*[32]byte)(k)) }

// AppendBase58 appends the base58 of the hash, at most 44 bytes, without allocating.
func (h *Hash) AppendBase58(dst []byte) []byte { return append58x32(dst, (*[32]byte)(h)) }

// AppendBase58 appends the base58 of the signature, at most 88 bytes, without allocating.
func (s *Signature) AppendBase58(dst []byte) []byte { return append58x64(dst, (*[64]byte)(s)) }

// String returns the key in base58.
func (k Pubkey) String() string {
	var buf [text32Max]byte
	return string(k.AppendBase58(buf[:0]))
}

// String returns the hash in base58.
func (h Hash) String() string {
	var buf [text32Max]byte
	return string(h.AppendBase58(buf[:0]))
}

// String returns the signature in base58.
func (s Signature) String() string {
	var buf [text64Max]byte
	return string(s.AppendBase58(buf[:0]))
}
