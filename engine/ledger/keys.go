package ledger

import (
	"bytes"
	"encoding/binary"
)

// Pubkey is the address of an account or program: 32 bytes, written in base58.
type Pubkey [32]byte

// Hash is the hash of a block: 32 bytes, written in base58.
type Hash [32]byte

// Signature names a transaction: the first of its ed25519 signatures.
type Signature [64]byte

// Prefix returns the first 8 bytes as a big-endian number, so that keys with different
// prefixes have the order of their prefixes. Trees compare it inline before
// they follow a pointer to the rest.
func (k *Pubkey) Prefix() uint64 { return binary.BigEndian.Uint64(k[:8]) }

// Compare orders keys by their bytes.
func (k *Pubkey) Compare(other *Pubkey) int { return bytes.Compare(k[:], other[:]) }

// Programs and mints that have a meaning of their own.
var (
	SystemProgram    = Pubkey{}
	TokenProgram     = MustPubkey("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA")
	Token2022Program = MustPubkey("TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb")
	SysvarProgram    = MustPubkey("Sysvar1111111111111111111111111111111111111")
	clockSysvar      = MustPubkey("SysvarC1ock11111111111111111111111111111111")
	slotHashesSysvar = MustPubkey("SysvarS1otHashes111111111111111111111111111")
	VoteProgram      = MustPubkey("Vote111111111111111111111111111111111111111")
	NativeMint       = MustPubkey("So11111111111111111111111111111111111111112")
	NativeMint2022   = MustPubkey("9pan9bMn5HatX4EJdBwg9VgCa7Uz5HL8N1m5D3NdXej9")
)

// IsTokenProgram reports whether the program is one of the two SPL token programs.
func IsTokenProgram(program Pubkey) bool {
	return program == TokenProgram || program == Token2022Program
}

// MustPubkey returns the key of a constant text of the program. It panics if the text is not a pubkey.
func MustPubkey(s string) Pubkey {
	k, err := ParsePubkey(s)
	if err != nil {
		panic("bad built-in key " + s)
	}
	return k
}
