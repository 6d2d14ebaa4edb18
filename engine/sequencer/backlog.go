package sequencer

import (
	"fmt"
	"slices"

	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
)

const (
	// maxUnfinalizedBytes bounds the memory of blocks that may be undone. With a memory limit the bound is at most
	// one part in unfinalizedShare of the limit.
	maxUnfinalizedBytes, unfinalizedShare = 1 << 30, 4
	// keptBackShare bounds the events that are kept back, and the base state that waits, to one part each in so many of a memory limit.
	keptBackShare = 16
)

// within returns how many bytes a part of the state may take: most, or one part in share of the memory limit if that is less.
func (c *Config) within(most, share int64) int64 {
	if c.MemoryLimit == 0 {
		return most
	}
	return min(most, c.MemoryLimit/share)
}

// Handle applies one event, or answers a question. While the unfinalized blocks exceed a bound, Handle keeps events back, in
// order. It still applies a status of a held block, since that can make room, and a held block that comes again, since that takes
// no room and may claim a status. An event that makes a kept-back block final releases the events up to itself. Handle returns a
// chain.RefusedError if the events kept back exceed a bound too.
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
	return s.applyBacklog()
}

// applyBacklog applies events that were kept back, while there is room; the first makeRoom of them it applies in any case.
func (s *Sequencer) applyBacklog() error {
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

// makesFinal reports whether an event that is to be kept back is a final block, or makes a kept-back block final. If so, the event
// and all events before it are decided.
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
