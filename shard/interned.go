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
	counts []uint32    // by name: how many records have it
	parts  [256]hashes // of names, by the first byte of the hash, so that none takes long to resize

	touched uint32 // has no meaning: it keeps the loads of read-ahead alive
}

// readAhead is for how many keys memory is read at once: about as many as a transaction names.
const readAhead = 16

// useAll adds the names of keys to names, each for one more record. Where they are is read for
// some keys before any is compared, so that the processor waits for memory once and not for each:
// measured with 200,000 keys in random order, that takes a quarter less.
func (t *interned) useAll(keys []ledger.Pubkey, names []ref) []ref {
	var found [readAhead]uint32
	var places [readAhead]ref
	for len(keys) > 0 {
		some := keys[:min(len(keys), readAhead)]
		keys = keys[len(some):]
		for i := range some {
			found[i] = hashOf(&some[i])
			part := t.part(found[i])
			part.grow() // so that there is a table
			at, _ := part.first(found[i])
			places[i] = ref(part.table[at])
		}
		for _, r := range places[:len(some)] {
			if r != 0 {
				t.touched += uint32(t.names.at(r)[0]) + t.counts[r]
			}
		}
		for i := range some {
			if some[i] == (ledger.Pubkey{}) {
				names = append(names, 0)
			} else {
				names = append(names, t.useHashed(&some[i], found[i]))
			}
		}
	}
	return names
}

// find returns the name of a key, false if no record has it.
func (t *interned) find(k *ledger.Pubkey) (ref, bool) {
	if *k == (ledger.Pubkey{}) {
		return 0, true
	}
	hash := hashOf(k)
	part := t.part(hash)
	if part.used == 0 {
		return 0, false
	}
	e := part.table[t.place(k, hash)]
	return ref(e), e != 0
}

func (t *interned) part(hash uint32) *hashes { return &t.parts[hash>>24] }

// place returns where in its part a key is, or would be.
func (t *interned) place(k *ledger.Pubkey, hash uint32) int {
	part := t.part(hash)
	for at, mask := part.first(hash); ; at = (at + 1) & mask {
		e := part.table[at]
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
	return t.useHashed(k, hashOf(k))
}

func (t *interned) useHashed(k *ledger.Pubkey, hash uint32) ref {
	part := t.part(hash)
	part.grow()
	at := t.place(k, hash)
	if part.table[at] == 0 {
		r := t.slots.take()
		t.names.reach(r)
		*t.names.at(r) = *k
		for len(t.counts) <= int(r) {
			t.counts = append(t.counts, 0)
		}
		part.add(at, hash, uint32(r))
	}
	r := ref(part.table[at])
	t.counts[r]++
	return r
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
	hash := hashOf(k)
	t.part(hash).remove(t.place(k, hash))
	t.slots.give(r)
}
