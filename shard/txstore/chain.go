package txstore

import (
	"sort"

	"ledgerd/engine/ledger"
)

// Chain is blocks of a chain, oldest first. Heads share it, so it must not be changed.
type Chain []*Block

// FirstFrom returns the index of the first block at or above a slot.
func (c Chain) FirstFrom(slot ledger.Slot) int {
	return sort.Search(len(c), func(i int) bool { return c[i].Block.Slot >= slot })
}
