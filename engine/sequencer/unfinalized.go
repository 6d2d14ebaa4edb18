package sequencer

import (
	"fmt"

	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
)

const (
	// maxUnfinalizedBytes is how much may be held of blocks because they may be undone before health says so, where memory has no limit;
	// unfinalizedShare is its part of a limit, one in so many.
	maxUnfinalizedBytes, unfinalizedShare = 1 << 30, 4
	// spareShare is the part of a limit, one in so many, that more of these blocks may take before ingest stops, and as much base state that waits.
	spareShare = 16
)

// within returns the part of the memory, one in share, that something may take: at most most.
func (c *Config) within(most, share int64) int64 {
	if c.MemoryLimit == 0 {
		return most
	}
	return min(most, c.MemoryLimit/share)
}

// spare returns how much more than too much blocks that are not final may take, and how much base state may that waits.
func (c *Config) spare() int64 { return c.within(chain.MaxWaitingBytes, spareShare) }

// Handle applies one event, or answers a question. It returns a chain.RefusedError where blocks that no status makes final take more than there is
// room for.
func (s *Sequencer) Handle(ev ledger.Event) error {
	if q, ok := ev.(*ledger.Question); ok {
		return s.answer(q)
	}
	if err := s.decide(ev); err != nil {
		return err
	}
	if s.excess() <= s.config.spare() {
		return nil
	}
	why := "the source finalizes none of them"
	if s.config.Info.FinalityByDepth && !s.statusSeen {
		why = fmt.Sprintf("without a status of the source none is final before there are %d: start the node with a higher --memory-limit", FinalityDepth)
	}
	return chain.Refused("%d bytes are held for blocks that are unfinalized, and %s", s.chain.UnfinalizedBytes, why)
}

// excess returns by how much the blocks that are not final exceed what they should take.
func (s *Sequencer) excess() int64 {
	return int64(s.chain.UnfinalizedBytes) - s.config.within(maxUnfinalizedBytes, unfinalizedShare)
}

// Overfull reports whether too much is unfinalized: ingest stops when there is some more of it.
func (s *Sequencer) Overfull() bool { return s.excess() > 0 }
