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

// ParsePubkey reads a pubkey: 32 to 44 characters, the base58 of exactly 32 bytes.
func ParsePubkey[T string | []byte](s T) (k Pubkey, err error) {
	if len(s) < text32Min || len(s) > text32Max {
		return Pubkey{}, errBase58Length
	}
	if err = decode58x32((*[32]byte)(&k), s); err != nil {
		return Pubkey{}, err
	}
	return k, nil
}

// ParseHash reads a block hash: 32 to 44 characters, the base58 of exactly 32 bytes.
func ParseHash[T string | []byte](s T) (h Hash, err error) {
	if len(s) < text32Min || len(s) > text32Max {
		return Hash{}, errBase58Length
	}
	if err = decode58x32((*[32]byte)(&h), s); err != nil {
		return Hash{}, err
	}
	return h, nil
}

// ParseSignature reads a signature: 64 to 88 characters, the base58 of exactly 64 bytes.
func ParseSignature[T string | []byte](s T) (sig Signature, err error) {
	if len(s) < text64Min || len(s) > text64Max {
		return Signature{}, errBase58Length
	}
	if err = decode58x64((*[64]byte)(&sig), s); err != nil {
		return Signature{}, err
	}
	return sig, nil
}

// AppendBase58 appends the base58 of the key, at most 44 bytes.
func (k *Pubkey) AppendBase58(dst []byte) []byte { return append58x32(dst, (*[32]byte)(k)) }

// AppendBase58 appends the base58 of the hash, at most 44 bytes.
func (h *Hash) AppendBase58(dst []byte) []byte { return append58x32(dst, (*[32]byte)(h)) }

// AppendBase58 appends the base58 of the signature, at most 88 bytes.
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

// MarshalText returns the key in base58.
func (k Pubkey) MarshalText() ([]byte, error) { return k.AppendBase58(nil), nil }

// MarshalText returns the hash in base58.
func (h Hash) MarshalText() ([]byte, error) { return h.AppendBase58(nil), nil }

// MarshalText returns the signature in base58.
func (s Signature) MarshalText() ([]byte, error) { return s.AppendBase58(nil), nil }

// UnmarshalText sets the key as ParsePubkey reads it.
func (k *Pubkey) UnmarshalText(text []byte) (err error) {
	*k, err = ParsePubkey(text)
	return err
}

// UnmarshalText sets the hash as ParseHash reads it.
func (h *Hash) UnmarshalText(text []byte) (err error) {
	*h, err = ParseHash(text)
	return err
}

// UnmarshalText sets the signature as ParseSignature reads it.
func (s *Signature) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSignature(text)
	return err
}
