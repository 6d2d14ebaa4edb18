package shard

import (
	"math/bits"
)

// Of returns the number of the shard that owns keys with the given prefix. Shards are ranges of
// keys, so the order of shards is the order of keys.
func Of(prefix uint64, shards int) int {
	hi, _ := bits.Mul64(prefix, uint64(shards))
	return int(hi)
}

// Range returns the prefixes of the keys that a shard owns, both ends included.
func Range(self, shards int) (first, last uint64) {
	return firstOf(self, shards), firstOf(self+1, shards) - 1
}

// firstOf returns the lowest prefix of a shard: self × 2^64 / shards, rounded up. For self = shards
// it returns 0, which is 2^64 in a uint64.
func firstOf(self, shards int) uint64 {
	if self == shards {
		return 0
	}
	q, r := bits.Div64(uint64(self), 0, uint64(shards))
	if r > 0 {
		q++
	}
	return q
}
