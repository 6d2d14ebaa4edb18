package shard

import "ledgerd/engine/ledger"

// tombstone is a closed account and where it was closed.
type tombstone struct {
	slot ledger.Slot
	key  ledger.Pubkey
}

// tombstones wait for their end. They are a heap, the oldest first: folding finds them by
// key and version, so nearly but not quite in the order of their slots, and how long one is
// held must not depend on what was folded with it.
type tombstones []tombstone

// push adds t. It costs next to nothing where t is newer than most.
func (q *tombstones) push(t tombstone) {
	all := append(*q, t)
	at := len(all) - 1
	for at > 0 && all[(at-1)/2].slot > t.slot {
		all[at] = all[(at-1)/2]
		at = (at - 1) / 2
	}
	all[at] = t
	*q = all
}

// pop takes out the oldest; there must be one.
func (q *tombstones) pop() tombstone {
	all := *q
	oldest, last := all[0], all[len(all)-1]
	all = all[:len(all)-1]
	at := 0
	for len(all) > 0 {
		below := 2*at + 1
		if below+1 < len(all) && all[below+1].slot < all[below].slot {
			below++
		}
		if below >= len(all) || all[below].slot >= last.slot {
			all[at] = last
			break
		}
		all[at] = all[below]
		at = below
	}
	*q = all
	return oldest
}
