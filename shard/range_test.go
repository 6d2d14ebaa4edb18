package shard

import (
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

// TestRangesCoverTheKeySpace holds the two ways to tell a key's shard against each other.
func TestRangesCoverTheKeySpace(t *testing.T) {
	for _, shards := range []int{1, 2, 3, 5, 7, 64, 1000, 1024} {
		next := uint64(0)
		for self := range shards {
			first, last := Range(self, shards)
			if first != next || first > last || Of(first, shards) != self || Of(last, shards) != self {
				t.Fatalf("shard %d of %d owns %d to %d, which are of %d and %d, want from %d on",
					self, shards, first, last, Of(first, shards), Of(last, shards), next)
			}
			next = last + 1
		}
		ledgertest.MustHold(t, next == 0, "%d shards end before %d", shards, next)
	}
}
