package sequencer

import (
	"ledgerd/engine/chain"
)

// RollbackDepths are the bounds of the histogram of rollbacks, in blocks. Deeper ones than the last are refused.
var RollbackDepths = [...]uint64{1, 2, 4, 8, 16, chain.MaxRollbackBlocks}

// Counters count what a sequencer did since New.
type Counters struct {
	// Blocks counts what the source showed, or what the log of another node held: Duplicates among them were held
	// already, and Orphans belong to abandoned branches.
	Blocks, Updates, Duplicates, Orphans, Dead, Gaps uint64

	// Executed counts the transactions of the blocks that were appended to the chain, as the source states them.
	Executed uint64

	// Undone counts the blocks of all rollbacks. RollbacksUpTo[i] counts the rollbacks of at most
	// RollbackDepths[i] blocks.
	Rollbacks, Undone uint64
	RollbacksUpTo     [len(RollbackDepths)]uint64
}

// Counters returns the current counters. Any goroutine may call it.
func (s *Sequencer) Counters() Counters { return s.tally.Load() }

// rolledBack counts a rollback of so many blocks.
func (c *Counters) rolledBack(blocks int) {
	c.Rollbacks++
	c.Undone += uint64(blocks)
	for i, most := range RollbackDepths {
		if uint64(blocks) <= most {
			c.RollbacksUpTo[i]++
		}
	}
}
