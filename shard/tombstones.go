package shard

import (
	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
)

// tombstone is a closed account and where it was closed.
type tombstone struct {
	slot ledger.Slot
	key  ledger.Pubkey
}

// newTombstones returns a tree of tombstones, the oldest first: folding finds them nearly but not quite in the
// order of their slots, and how long one is held must not depend on what was folded with it.
func newTombstones() *btree.BTreeG[tombstone] {
	return btree.NewBTreeGOptions(func(a, b tombstone) bool {
		if a.slot != b.slot {
			return a.slot < b.slot
		}
		return a.key.Compare(&b.key) < 0
	}, btree.Options{NoLocks: true, Degree: degree})
}
