// Package bloom has filters that tell which keys a block's transactions may name: in memory for package txstore, and in the files of
// an archive for package snapshot, which do not know each other. Like engine/ledger it is for everybody, and imports the standard
// library alone.
package bloom

import "encoding/binary"

// Filter is a Bloom filter where the bits of one key lie in one cache line, so that a walk over thousands of blocks takes one miss for
// each. With 11 bits a key, fewer than one in 100 keys that were not added seem to be there. A key is a number; two that are equal are one.
//
// Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters" (2007), call it a blocked Bloom filter.
type Filter [][8]uint64

// lineBytes is the size of a cache line of a filter.
const lineBytes = 64

// filterKeyBits is how many bits a filter has for each key.
const filterKeyBits = 11

// Of returns the filter of keys, of which some may be equal. A first, rough one counts the distinct ones.
func Of[K ~uint32 | ~uint64](keys []K) Filter {
	rough, distinct := newFilter(len(keys)), 0
	for _, key := range keys {
		if rough.add(uint64(key)) {
			distinct++
		}
	}
	f := newFilter(distinct)
	for _, key := range keys {
		f.add(uint64(key))
	}
	return f
}

// newFilter returns a filter for some keys.
func newFilter(keys int) Filter { return make(Filter, (keys*filterKeyBits+511)/512) }

// marks returns two words of the filter, in one cache line, and the three bits that a key sets in each. f must not be empty.
func (f Filter) marks(key uint64) (a, b *uint64, inA, inB uint64) {
	// Keys may be numbered in turn. The products spread them: by 2^64 over the golden ratio, and by another odd number.
	hash := key * 0x9e3779b97f4a7c15
	line := &f[hash>>32*uint64(len(f))>>32]
	hash = (hash ^ hash>>32) * 0xd6e8feb86659fd93
	bit := func(n int) uint64 { return 1 << (hash >> n & 63) }
	return &line[hash>>61], &line[hash>>58&7], bit(52) | bit(46) | bit(40), bit(34) | bit(28) | bit(22)
}

// add adds a key and reports whether the filter did not seem to have it.
func (f Filter) add(key uint64) (added bool) {
	a, b, inA, inB := f.marks(key)
	added = *a&inA != inA || *b&inB != inB
	*a |= inA
	*b |= inB
	return added
}

// Has reports whether a key may have been added. It is true for all that were.
func (f Filter) Has(key uint64) bool {
	if len(f) == 0 {
		return false
	}
	a, b, inA, inB := f.marks(key)
	return *a&inA == inA && *b&inB == inB
}

// Append appends the bytes of a filter: its words, little endian.
func (f Filter) Append(dst []byte) []byte {
	for _, line := range f {
		for _, word := range line {
			dst = binary.LittleEndian.AppendUint64(dst, word)
		}
	}
	return dst
}

// Decode is the inverse of Append; ok is false for bytes that are no filter's.
func Decode(b []byte) (f Filter, ok bool) {
	if len(b)%lineBytes != 0 {
		return nil, false
	}
	f = make(Filter, len(b)/lineBytes)
	for i := range f {
		for j := range f[i] {
			f[i][j] = binary.LittleEndian.Uint64(b[i*lineBytes+8*j:])
		}
	}
	return f, true
}
