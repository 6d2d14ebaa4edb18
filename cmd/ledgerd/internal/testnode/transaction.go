package testnode

import (
	"encoding/binary"

	"ledgerd/engine/ledger"
)

// split says how the accounts of a made transaction are spread: static keys in the message, then those
// loaded from a lookup table. Every third transaction of four accounts or more is of version 0 and loads
// its last two, one writable and one readonly.
func split(tx *ledger.Transaction) (static, writable, readonly []ledger.Pubkey, versioned bool) {
	n := len(tx.Accounts)
	if n < 4 || tx.Index%3 != 2 {
		return tx.Accounts, nil, nil, false
	}
	return tx.Accounts[:n-2], tx.Accounts[n-2 : n-1], tx.Accounts[n-1:], true
}

// isVote reports whether a made transaction is a vote.
func isVote(tx *ledger.Transaction) bool {
	n := len(tx.Accounts)
	return n == 3 && tx.Accounts[n-1] == ledger.VoteProgram
}

// instruction is what a made transaction asks for: four bytes of no meaning.
var instruction = []byte{2, 0, 0, 0}

// wireTransaction spells a transaction as it is sent over a network.
//
//	count, signatures of 64 | [0x80] required u8, readonly signed u8, readonly unsigned u8
//	count, keys of 32 | blockhash 32 | count, instructions | [count, lookups]
func wireTransaction(tx *ledger.Transaction, blockhash ledger.Hash) []byte {
	static, writable, readonly, versioned := split(tx)
	b := append([]byte{1}, tx.Signature[:]...)
	if versioned {
		b = append(b, 0x80)
	}
	b = append(b, 1, 0, 0)
	b = appendCount(b, len(static))
	for _, k := range static {
		b = append(b, k[:]...)
	}
	b = append(b, blockhash[:]...)
	b = append(b, 1, byte(len(static)-1), 1, 0) // one instruction for the last key about the first
	b = append(appendCount(b, len(instruction)), instruction...)
	if versioned {
		b = append(b, 1)
		b = append(b, make([]byte, 32)...) // the lookup table
		b = append(b, byte(len(writable)), 0, byte(len(readonly)), 1)
	}
	return b
}

// appendCount appends a count of seven bits a byte, lowest first.
func appendCount(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)) }
