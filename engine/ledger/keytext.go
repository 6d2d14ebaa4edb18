package ledger

import "ledgerd/engine/base58"

// Keys, hashes and signatures are written in base58. Every error of ParsePubkey, ParseHash and
// ParseSignature is a base58.Err.

// ParsePubkey reads a pubkey: 32 to 44 characters, the base58 of exactly 32 bytes.
func ParsePubkey[T string | []byte](s T) (k Pubkey, err error) {
	err = base58.Decode32((*[32]byte)(&k), s)
	return k, err
}

// ParseHash reads a block hash: 32 to 44 characters, the base58 of exactly 32 bytes.
func ParseHash[T string | []byte](s T) (h Hash, err error) {
	err = base58.Decode32((*[32]byte)(&h), s)
	return h, err
}

// ParseSignature reads a signature: 64 to 88 characters, the base58 of exactly 64 bytes.
func ParseSignature[T string | []byte](s T) (sig Signature, err error) {
	err = base58.Decode64((*[64]byte)(&sig), s)
	return sig, err
}

// AppendBase58 appends the base58 of the key, at most 44 bytes.
func (k *Pubkey) AppendBase58(dst []byte) []byte { return base58.Append32(dst, (*[32]byte)(k)) }

// AppendBase58 appends the base58 of the hash, at most 44 bytes.
func (h *Hash) AppendBase58(dst []byte) []byte { return base58.Append32(dst, (*[32]byte)(h)) }

// AppendBase58 appends the base58 of the signature, at most 88 bytes.
func (s *Signature) AppendBase58(dst []byte) []byte { return base58.Append64(dst, (*[64]byte)(s)) }

// String returns the key in base58.
func (k Pubkey) String() string { return string(k.AppendBase58(make([]byte, 0, base58.Max32))) }

// String returns the hash in base58.
func (h Hash) String() string { return string(h.AppendBase58(make([]byte, 0, base58.Max32))) }

// String returns the signature in base58.
func (s Signature) String() string { return string(s.AppendBase58(make([]byte, 0, base58.Max64))) }

// MarshalText returns the key in base58.
func (k Pubkey) MarshalText() ([]byte, error) { return k.AppendBase58(nil), nil }

// MarshalText returns the hash in base58.
func (h Hash) MarshalText() ([]byte, error) { return h.AppendBase58(nil), nil }

// MarshalText returns the signature in base58.
func (s Signature) MarshalText() ([]byte, error) { return s.AppendBase58(nil), nil }

// UnmarshalText sets the key as ParsePubkey reads it.
func (k *Pubkey) UnmarshalText(text []byte) error { return base58.Decode32((*[32]byte)(k), text) }

// UnmarshalText sets the hash as ParseHash reads it.
func (h *Hash) UnmarshalText(text []byte) error { return base58.Decode32((*[32]byte)(h), text) }

// UnmarshalText sets the signature as ParseSignature reads it.
func (s *Signature) UnmarshalText(text []byte) error { return base58.Decode64((*[64]byte)(s), text) }
