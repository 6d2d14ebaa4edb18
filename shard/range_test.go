package shard

import (
	"math"
	"testing"
)

// TestRangesCoverTheKeySpace holds the two ways to tell a key's shard against each other.
func TestRangesCoverTheKeySpace(t *testing.T) {
	for _, shards := range []int{1, 2, 3, 5, 7, 64, 1000, 1024} {
		next := uint64(0)
		for self := range shards {
			first, last := Range(self, shards)
			if first != next || first > last {
				t.Fatalf("shard %d of %d owns %d to %d, want from %d on", self, shards, first, last, next)
			}
			for _, prefix := range []uint64{first, last} {
				if owner := Of(prefix, shards); owner != self {
					t.Fatalf("prefix %d of %d shards belongs to %d, and to the range of %d", prefix, shards, owner, self)
				}
			}
			next = last + 1
		}
		if _, last := Range(shards-1, shards); last != math.MaxUint64 {
			t.Fatalf("%d shards end at %d", shards, last)
		}
	}
}
