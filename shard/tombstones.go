package shard

import (
	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
)

// tombstone is a closed account.
type tombstone struct {
	slot ledger.Slot // where it was closed
	key  ledger.Pubkey
}

// newTombstones returns a tree of tombstones, the oldest slot first. A queue would not do: folding finds tombstones
// only nearly in the order of their slots, and when one is dropped must not depend on what was folded with it.
func newTombstones() *btree.BTreeG[tombstone] {
	return btree.NewBTreeGOptions(func(a, b tombstone) bool {
		if a.slot != b.slot {
			return a.slot < b.slot
		}
		return a.key.Compare(&b.key) < 0
	}, btree.Options{NoLocks: true, Degree: degree})
}
