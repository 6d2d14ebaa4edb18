package arena

import (
	"unsafe"

	"ledgerd/engine/ledger"
)

// Keys stores each key once for as long as it has references.
type Keys struct {
	Names   Pool[Key]
	numbers map[ledger.Pubkey]Ref
	recent  [64]Ref // a number of a key with these last bits, which saves most look-ups of programs and common mints
}

// Key is a stored key. Only the owner of the Keys may read its count.
type Key struct {
	ledger.Pubkey
	count uint32 // references
}

// Find returns the number of a key, 0 if the key is not stored.
func (k *Keys) Find(key *ledger.Pubkey) Ref {
	recent := &k.recent[key[len(key)-1]%64]
	if *recent == 0 || k.Names.At(*recent).Pubkey != *key {
		r, found := k.numbers[*key]
		if !found {
			return 0
		}
		*recent = r
	}
	return *recent
}

// Use adds a reference to a key and returns its number.
func (k *Keys) Use(key *ledger.Pubkey) Ref {
	r := k.Find(key)
	if r == 0 {
		if k.numbers == nil {
			k.numbers = make(map[ledger.Pubkey]Ref)
		}
		r = k.Names.Take()
		k.Names.At(r).Pubkey = *key
		k.numbers[*key] = r
	}
	k.Names.At(r).count++
	return r
}

// SizeBytes estimates the memory of the keys: a third of the map's room is empty.
func (k *Keys) SizeBytes() int {
	return k.Names.SizeBytes() + len(k.numbers)*int(unsafe.Sizeof(ledger.Pubkey{})+unsafe.Sizeof(Ref(0)))*3/2
}

// Drop removes a reference. The number is reused when there are none.
func (k *Keys) Drop(r Ref) {
	key := k.Names.At(r)
	if key.count--; key.count == 0 {
		delete(k.numbers, key.Pubkey)
		k.recent[key.Pubkey[len(key.Pubkey)-1]%64] = 0
		k.Names.Give(r)
	}
}
