package shard

import (
	"hash/maphash"

	"ledgerd/engine/ledger"
)

// seed is of all hashes of keys: others choose the keys, and must not know what collides.
var seed = maphash.MakeSeed()

// hashOf returns 32 bits of a key's hash.
func hashOf(k *ledger.Pubkey) uint32 { return uint32(maphash.Bytes(seed, k[:])) }

// interned keeps keys that many records name, each once, for as long as one does. The key of
// zeros is 0 and takes nothing.
type interned struct {
	names  *chunks[ledger.Pubkey]
	slots  slots
	counts []uint32 // by name: how many records have it

	// table is a hash table with linear probing: the hash of a key in the upper half, its
	// name in the lower. 0 is a free place.
	table []uint64
}

const smallestTable = 64

// find returns the name of a key, false if no record has it.
func (t *interned) find(k *ledger.Pubkey) (ref, bool) {
	if *k == (ledger.Pubkey{}) {
		return 0, true
	}
	if len(t.table) == 0 {
		return 0, false
	}
	at := t.place(k, hashOf(k))
	return ref(t.table[at]), t.table[at] != 0
}

// place returns where in the table a key is, or would be.
func (t *interned) place(k *ledger.Pubkey, hash uint32) int {
	mask := len(t.table) - 1
	for at := int(hash) & mask; ; at = (at + 1) & mask {
		e := t.table[at]
		if e == 0 || uint32(e>>32) == hash && *t.names.at(ref(e)) == *k {
			return at
		}
	}
}

// use returns the name of a key for one more record.
func (t *interned) use(k *ledger.Pubkey) ref {
	if *k == (ledger.Pubkey{}) {
		return 0
	}
	if 4*(t.slots.taken()+1) > 3*len(t.table) {
		t.grow()
	}
	hash := hashOf(k)
	at := t.place(k, hash)
	if t.table[at] == 0 {
		r := t.slots.take()
		t.names.reach(r)
		*t.names.at(r) = *k
		for len(t.counts) <= int(r) {
			t.counts = append(t.counts, 0)
		}
		t.table[at] = uint64(hash)<<32 | uint64(r)
	}
	r := ref(t.table[at])
	t.counts[r]++
	return r
}

func (t *interned) grow() {
	old := t.table
	t.table = make([]uint64, max(smallestTable, 2*len(old)))
	mask := len(t.table) - 1
	for _, e := range old {
		if e == 0 {
			continue
		}
		at := int(e>>32) & mask
		for t.table[at] != 0 {
			at = (at + 1) & mask
		}
		t.table[at] = e
	}
}

// drop takes a name from one record that had it.
func (t *interned) drop(r ref) {
	if r == 0 {
		return
	}
	if t.counts[r]--; t.counts[r] > 0 {
		return
	}
	k := t.names.at(r)
	at := t.place(k, hashOf(k))
	// Close the gap, so that probing needs no marks of what was here: move up each entry behind
	// it that would not be found past a free place.
	mask := len(t.table) - 1
	for next := (at + 1) & mask; t.table[next] != 0; next = (next + 1) & mask {
		home := int(t.table[next]>>32) & mask
		if (next-home)&mask >= (next-at)&mask {
			t.table[at] = t.table[next]
			at = next
		}
	}
	t.table[at] = 0
	t.slots.give(r)
}
