package txstore

import "ledgerd/shard/arena"

// filter tells which keys a block's transactions may name: a Bloom filter where the bits of one key lie in one cache line, so that a walk
// over thousands of blocks takes one miss for each. With 11 bits a key, fewer than one in 100 keys that a block does not name seem named.
//
// Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters" (2007), call it a blocked Bloom filter.
type filter [][8]uint64

// filterKeyBits is how many bits a filter has for each key.
const filterKeyBits = 11

// filterOf returns the filter of keys, of which some may be equal. A first, rough one counts the distinct ones.
func filterOf(keys []arena.Ref) filter {
	rough, distinct := newFilter(len(keys)), 0
	for _, key := range keys {
		if rough.add(key) {
			distinct++
		}
	}
	f := newFilter(distinct)
	for _, key := range keys {
		f.add(key)
	}
	return f
}

// newFilter returns a filter for some keys.
func newFilter(keys int) filter { return make(filter, (keys*filterKeyBits+511)/512) }

// marks returns two words of the filter, in one cache line, and the three bits that a key sets in each. f must not be empty.
func (f filter) marks(key arena.Ref) (a, b *uint64, inA, inB uint64) {
	// Keys are numbered in turn. The products spread them: by 2^64 over the golden ratio, and by another odd number.
	hash := uint64(key) * 0x9e3779b97f4a7c15
	line := &f[hash>>32*uint64(len(f))>>32]
	hash = (hash ^ hash>>32) * 0xd6e8feb86659fd93
	bit := func(n int) uint64 { return 1 << (hash >> n & 63) }
	return &line[hash>>61], &line[hash>>58&7], bit(52) | bit(46) | bit(40), bit(34) | bit(28) | bit(22)
}

// add adds a key and reports whether the filter did not seem to have it.
func (f filter) add(key arena.Ref) (added bool) {
	a, b, inA, inB := f.marks(key)
	added = *a&inA != inA || *b&inB != inB
	*a |= inA
	*b |= inB
	return added
}

// has reports whether a key may have been added. It is true for all that were.
func (f filter) has(key arena.Ref) bool {
	if len(f) == 0 {
		return false
	}
	a, b, inA, inB := f.marks(key)
	return *a&inA == inA && *b&inB == inB
}
