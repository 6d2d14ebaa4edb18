package sequencer

import (
	"slices"
	"sync/atomic"

	"ledgerd/engine/chain"
)

// RollbackDepths are the bounds of the histogram of rollbacks, in blocks. Deeper ones than the last are refused.
var RollbackDepths = [...]uint64{1, 2, 4, 8, 16, chain.MaxRollbackBlocks}

// Counters count what a sequencer did since New.
type Counters struct {
	Blocks, Updates, Rollbacks, Duplicates, Orphans, Dead, Gaps, UnknownStatuses uint64

	// Undone counts the blocks of all rollbacks. RollbacksUpTo[i] counts the rollbacks of at most
	// RollbackDepths[i] blocks.
	Undone        uint64
	RollbacksUpTo [len(RollbackDepths)]uint64
}

// Counters returns the current counters. Any goroutine may call it.
func (s *Sequencer) Counters() Counters {
	t := &s.tally
	c := Counters{
		Blocks: t.blocks.Load(), Updates: s.updates.Load(), Rollbacks: t.rollbacks.Load(),
		Duplicates: t.duplicates.Load(), Orphans: t.orphans.Load(), Dead: t.dead.Load(),
		Gaps: t.gaps.Load(), UnknownStatuses: t.unknownStatuses.Load(), Undone: t.undone.Load(),
	}
	for i, sum := 0, uint64(0); i < len(c.RollbacksUpTo); i++ {
		sum += t.depths[i].Load()
		c.RollbacksUpTo[i] = sum
	}
	return c
}

// tally counts what the decider saw.
type tally struct {
	blocks, rollbacks, duplicates, orphans, dead, gaps, unknownStatuses atomic.Uint64

	undone atomic.Uint64                          // blocks, by all rollbacks
	depths [len(RollbackDepths) + 1]atomic.Uint64 // rollbacks, by the first of RollbackDepths that is not less
}

// rolledBack counts a rollback of so many blocks.
func (t *tally) rolledBack(blocks int) {
	t.rollbacks.Add(1)
	t.undone.Add(uint64(blocks))
	i, _ := slices.BinarySearch(RollbackDepths[:], uint64(blocks))
	t.depths[i].Add(1)
}
