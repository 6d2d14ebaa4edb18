package sequencer

import (
	"fmt"
	"slices"

	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
)

const (
	// maxUnfinalizedBytes bounds what is held of blocks because they may be undone, where memory has no limit;
	// unfinalizedShare is its part of a limit, one in so many.
	maxUnfinalizedBytes, unfinalizedShare = 1 << 30, 4
	// keptBackShare is the part of a limit, one in so many, that events may take which are kept back, and as much base state that waits.
	keptBackShare = 16
)

// within returns the part of the memory, one in share, that something may take: at most most.
func (c *Config) within(most, share int64) int64 {
	if c.MemoryLimit == 0 {
		return most
	}
	return min(most, c.MemoryLimit/share)
}

// Handle applies one event, or answers a question. While more than a bound of blocks is unfinalized it keeps events back, in
// order: only a status of a block that is held can make room, or what makes a block final that is kept back. A block that is held
// already takes nothing when it comes again, and may claim a status. It returns a chain.RefusedError where the events kept back
// exceed a bound too.
func (s *Sequencer) Handle(ev ledger.Event) error {
	if q, ok := ev.(*ledger.Question); ok {
		return s.answer(q)
	}
	apply := s.decide
	if s.mustWait(ev) {
		apply = s.keepBack
	}
	if err := apply(ev); err != nil {
		return err
	}
	return s.goOn()
}

// goOn applies events that were kept back, as far as there is room, or will be with the last of them.
func (s *Sequencer) goOn() error {
	for s.Paused() && (!s.overflows() || s.makeRoom > 0) {
		next := s.backlog[0]
		s.backlog[0] = nil
		s.backlog = s.backlog[1:]
		s.makeRoom = max(0, s.makeRoom-1)
		s.backlogBytes -= next.SizeBytes()
		if err := s.decide(next); err != nil {
			return err
		}
	}
	return nil
}

// Paused reports whether events are kept back because too much is unfinalized.
func (s *Sequencer) Paused() bool { return len(s.backlog) > 0 }

// overflows reports whether more blocks would exceed what may be kept unfinalized.
func (s *Sequencer) overflows() bool {
	return int64(s.chain.UnfinalizedBytes) > s.config.within(maxUnfinalizedBytes, unfinalizedShare)
}

// mustWait reports whether an event is to be kept back.
func (s *Sequencer) mustWait(ev ledger.Event) bool {
	switch e := ev.(type) {
	case *ledger.SlotStatus:
		return s.Paused() && !s.knows(e)
	case *ledger.Block:
		held := &ledger.SlotStatus{Slot: e.Slot, Blockhash: ledger.Some(e.Blockhash)}
		return (s.Paused() || s.overflows()) && !s.knows(held)
	}
	return s.Paused() || s.overflows()
}

// knows reports whether a status is about a block that is held, or about a slot that is final.
func (s *Sequencer) knows(e *ledger.SlotStatus) bool {
	f := s.chain.Finalized
	return f != nil && e.Slot <= f.Slot() || s.chain.BlockFor(e) != nil
}

// makesFinal reports whether an event, which is to be kept back, makes a block final that is kept back, or comes with it. All in front of
// the event are decided then.
func (s *Sequencer) makesFinal(ev ledger.Event) bool {
	switch e := ev.(type) {
	case *ledger.Block:
		return e.Status == ledger.Finalized
	case *ledger.SlotStatus:
		return e.Status == ledger.StatusFinalized && slices.ContainsFunc(s.backlog, func(kept ledger.Event) bool {
			b, is := kept.(*ledger.Block)
			return is && b.Slot == e.Slot
		})
	}
	return false
}

func (s *Sequencer) keepBack(ev ledger.Event) error {
	final := s.makesFinal(ev)
	if !final && int64(s.backlogBytes) > s.config.within(chain.MaxWaitingBytes, keptBackShare) {
		why := "the source has finalized none of them yet"
		if s.config.Info.FinalityByDepth && !s.statusSeen {
			why = fmt.Sprintf("without a status of the source none is final before there are %d", FinalityDepth)
		}
		if s.config.within(maxUnfinalizedBytes, unfinalizedShare) < maxUnfinalizedBytes {
			why += ": a higher --memory-limit lets more be held"
		}
		return chain.Refused("%d bytes are held for blocks that are unfinalized, and %s", s.chain.UnfinalizedBytes, why)
	}
	if !s.Paused() {
		s.config.Logger.Warn("ingest pauses: too much is unfinalized", "bytes", s.chain.UnfinalizedBytes)
	}
	s.backlog = append(s.backlog, ev)
	s.backlogBytes += ev.SizeBytes()
	if final {
		s.makeRoom = len(s.backlog)
	}
	return nil
}
