package sequencer

import (
	"slices"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/shard"
)

// TestUpdatesOfShardsAreJoined joins what shards did with one block: all of it, in the order of the shards.
func TestUpdatesOfShardsAreJoined(t *testing.T) {
	for _, counts := range [][]int{nil, {0, 0}, {3, 2}, {0, 4}, {4, 0}, {1, 0, 3}} {
		var parts []*shard.Applied
		var want []ledger.Lamports
		for _, n := range counts {
			part := new(shard.Applied)
			for range n {
				amount := ledger.Lamports(len(want) + 1)
				part.Updates = append(part.Updates, ledger.Update{Account: ledger.Account{Lamports: amount}})
				part.Unchanged = append(part.Unchanged, ledger.Account{Lamports: amount})
				want = append(want, amount)
			}
			parts = append(parts, part)
		}
		var r ledger.Record
		join(&r, parts)
		var updated, unchanged []ledger.Lamports
		for i := range r.Updates {
			updated = append(updated, r.Updates[i].Account.Lamports)
		}
		for i := range r.Unchanged {
			unchanged = append(unchanged, r.Unchanged[i].Lamports)
		}
		if !slices.Equal(updated, want) || !slices.Equal(unchanged, want) {
			t.Errorf("%v: updates %v, unchanged %v, want %v", counts, updated, unchanged, want)
		}
	}
}
