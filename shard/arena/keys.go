package arena

import "ledgerd/engine/ledger"

// Keys stores each key once for as long as it has references.
type Keys struct {
	Names   Pool[Key]
	numbers map[ledger.Pubkey]Ref
}

// Key is a stored key. Only the owner of the Keys may read its count.
type Key struct {
	ledger.Pubkey
	count uint32 // references
}

// Find returns the number of a key, false if the key is not stored.
func (k *Keys) Find(key *ledger.Pubkey) (Ref, bool) {
	r, found := k.numbers[*key]
	return r, found
}

// Use adds a reference to a key and returns its number.
func (k *Keys) Use(key *ledger.Pubkey) Ref {
	r, found := k.numbers[*key]
	if !found {
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

// Drop removes a reference. The number is reused when there are none.
func (k *Keys) Drop(r Ref) {
	key := k.Names.At(r)
	if key.count--; key.count == 0 {
		delete(k.numbers, key.Pubkey)
		k.Names.Give(r)
	}
}
