package feed

import (
	"encoding/binary"
	"iter"

	"ledgerd/engine/ledger"
)

// FirstSlot is the slot of the first block. All slots of a feed have so many digits that frames
// do not grow.
const FirstSlot ledger.Slot = 1_000_000

// Programs own the accounts in turns.
const Programs = 16

// Key returns the account of an index. Keys look random, as those of a ledger do: neighbours by
// index lie anywhere in the order of keys. All have 44 digits, so that all frames are as long.
func Key(i int) (k ledger.Pubkey) {
	fill(k[:], uint64(i)<<8|'a')
	if k[0] < 0x10 {
		k[0] |= 0x10
	}
	return k
}

// Program returns the owner of the account of an index.
func Program(i int) (k ledger.Pubkey) {
	fill(k[:], uint64(i%Programs)<<8|'p')
	return k
}

// Blockhash returns the hash of the block of a slot.
func Blockhash(s ledger.Slot) (h ledger.Hash) {
	fill(h[:], uint64(s)<<8|'b')
	return h
}

// Signature returns that of the transaction of a slot.
func Signature(s ledger.Slot) (sig ledger.Signature) {
	fill(sig[:], uint64(s)<<8|'s')
	return sig
}

// fill fills 32 bytes with numbers of the SplitMix64 generator, of which different seeds have
// different first ones.
func fill(b []byte, seed uint64) {
	x := seed * 0x9e3779b97f4a7c15
	for ; len(b) > 0; b = b[8:] {
		x += 0x9e3779b97f4a7c15
		z := x
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		binary.BigEndian.PutUint64(b, z^z>>31)
	}
}

// Config says what ledger is made up.
type Config struct {
	Accounts int // of the base state
	Updates  int // of a block; at most Accounts
	Finality int // how many blocks deep a block is finalized; 0: 32, as clusters do
	Tokens   int // how many of every hundred accounts hold tokens
	Data     int // bytes of data of each account, whole words, of which each update changes ChangedBytes; 0: the feed tells no data

	Transactions bool // each block has one
}

const defaultFinality = 32

// first returns the index of the first account that a block updates. The others follow, where after the last index comes 0.
func (c Config) first(s ledger.Slot) int {
	n := uint64(s-FirstSlot) % uint64(c.Accounts) // so that the product is small
	return int(n * uint64(c.Updates) % uint64(c.Accounts))
}

// Has reports whether the block of a slot updates the account of an index. The first block
// updates nothing.
func (c Config) Has(s ledger.Slot, index int) bool {
	return s > FirstSlot && index < c.Accounts && (index-c.first(s)+c.Accounts)%c.Accounts < c.Updates
}

// Indexes goes through the indexes of the accounts that the block of a slot updates.
func (c Config) Indexes(s ledger.Slot) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := 0; s > FirstSlot && i < c.Updates; i++ {
			if !yield((c.first(s) + i) % c.Accounts) {
				return
			}
		}
	}
}

// Of returns how many of the blocks from one slot to another, both included, update the account
// of an index.
func (c Config) Of(index int, from, to ledger.Slot) (blocks int) {
	for s := from; s <= to; s++ {
		if c.Has(s, index) {
			blocks++
		}
	}
	return blocks
}
