package shard

import (
	"slices"
	"testing"

	"ledgerd/engine/ledger"
)

// TestTombstonesComeOutOldestFirst pushes and pops at random and compares with a sorted list.
func TestTombstonesComeOutOldestFirst(t *testing.T) {
	r := seeded(t, 1)
	var q tombstones
	var want []ledger.Slot
	for n := range 5000 {
		if len(want) > 0 && r.IntN(100) < 45 {
			if got := q.pop(); got.slot != want[0] {
				t.Fatalf("step %d: got slot %d, want %d of %d", n, got.slot, want[0], len(want))
			}
			want = want[1:]
			continue
		}
		slot := ledger.Slot(n/3 + r.IntN(50))
		q.push(tombstone{slot: slot})
		at, _ := slices.BinarySearch(want, slot)
		want = slices.Insert(want, at, slot)
	}
	if len(q) != len(want) {
		t.Errorf("%d are left, want %d", len(q), len(want))
	}
}
