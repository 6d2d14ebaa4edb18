package arena

import (
	"hash/maphash"

	"ledgerd/engine/ledger"
)

// seed is the seed of all hashes of keys. It is random, so that nobody can choose keys that collide.
var seed = maphash.MakeSeed()

// HashOf returns 32 bits of a key's hash. It differs from process to process.
func HashOf(k *ledger.Pubkey) uint32 { return uint32(maphash.Bytes(seed, k[:])) }

// HashTable finds the numbers of values by the hashes of their keys. It is divided into parts that are resized one by
// one, so no resize takes long.
type HashTable struct {
	parts [256]Part // by the first byte of the hash
}

// Part returns the part for a hash.
func (t *HashTable) Part(hash uint32) *Part { return &t.parts[hash>>24] }

// Load reads the bucket where the search for a hash begins into the caches of the processor. The caller must use the result, which means
// nothing: else the read is optimized away.
func (t *HashTable) Load(hash uint32) uint64 {
	part := t.Part(hash)
	if part.Used == 0 {
		return 0
	}
	at, _ := part.First(hash)
	return part.Entries[at]
}

// SizeBytes returns how much memory the entries and the empty buckets take.
func (t *HashTable) SizeBytes() (bytes int) {
	for i := range t.parts {
		bytes += 8 * len(t.parts[i].Entries)
	}
	return bytes
}

// Part is a hash table with linear probing. An entry has the hash in its upper half and the number
// in its lower; 0 is an empty bucket. A search begins at First and compares keys until it comes to an empty bucket.
type Part struct {
	Entries []uint64 // one per bucket
	Used    int      // how many buckets are not empty
}

// smallestPart is how many buckets a part with entries has at least.
const smallestPart = 64

// First returns the bucket where a search begins; the bucket after at is (at+1)&mask.
func (p *Part) First(hash uint32) (at, mask int) {
	mask = len(p.Entries) - 1
	return int(hash) & mask, mask
}

// Add adds an entry. Entries may move.
func (p *Part) Add(hash, number uint32) {
	if 4*(p.Used+1) > 3*len(p.Entries) {
		p.resize(max(smallestPart, 2*len(p.Entries)))
	}
	p.put(uint64(hash)<<32 | uint64(number))
	p.Used++
}

// put puts an entry into the empty bucket where a search for it ends.
func (p *Part) put(entry uint64) {
	at, mask := p.First(uint32(entry >> 32))
	for p.Entries[at] != 0 {
		at = (at + 1) & mask
	}
	p.Entries[at] = entry
}

func (p *Part) resize(buckets int) {
	old := p.Entries
	p.Entries = make([]uint64, buckets)
	for _, e := range old {
		if e != 0 {
			p.put(e)
		}
	}
}

// bucket returns the bucket of an entry, which must be there.
func (p *Part) bucket(hash, number uint32) int {
	for at, mask := p.First(hash); ; at = (at + 1) & mask {
		switch p.Entries[at] {
		case uint64(hash)<<32 | uint64(number):
			return at
		case 0:
			panic("the hash table lacks an entry")
		}
	}
}

// Replace changes the number of an entry, which must be there.
func (p *Part) Replace(hash, number, by uint32) {
	p.Entries[p.bucket(hash, number)] = uint64(hash)<<32 | uint64(by)
}

// Remove removes an entry, which must be there. Entries may move.
func (p *Part) Remove(hash, number uint32) {
	// Backward shift, which needs no marks of deleted entries: each later entry that a search would not reach
	// past the empty bucket moves into it.
	at, mask := p.bucket(hash, number), len(p.Entries)-1
	for next := (at + 1) & mask; p.Entries[next] != 0; next = (next + 1) & mask {
		home := int(p.Entries[next]>>32) & mask
		if (next-home)&mask >= (next-at)&mask {
			p.Entries[at] = p.Entries[next]
			at = next
		}
	}
	p.Entries[at] = 0
	if p.Used--; len(p.Entries) > smallestPart && 8*p.Used < len(p.Entries) {
		p.resize(len(p.Entries) / 2)
	}
}
