package sequencer

import (
	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
)

// maxUnfinalizedBytes bounds the blocks that are kept whole because they may be undone.
const maxUnfinalizedBytes = 1 << 30

// Handle applies one event, or answers a question. While more than a bound of blocks is unfinalized it keeps events back, in
// order: only a status of a block that is held can make room. It returns a chain.RefusedError where more than
// chain.MaxWaitingBytes of events are kept back.
func (s *Sequencer) Handle(ev ledger.Event) error {
	if q, ok := ev.(*ledger.Question); ok {
		return s.answer(q)
	}
	status, isStatus := ev.(*ledger.SlotStatus)
	if isStatus && s.Paused() && !s.knows(status) || !isStatus && (s.Paused() || s.overflows()) {
		return s.keepBack(ev)
	}
	if err := s.decide(ev); err != nil {
		return err
	}
	for s.Paused() && !s.overflows() {
		next := s.backlog[0]
		s.backlog[0] = nil
		s.backlog = s.backlog[1:]
		s.backlogBytes -= eventBytes(next)
		if err := s.decide(next); err != nil {
			return err
		}
	}
	return nil
}

// Paused reports whether events are kept back because too much is unfinalized.
func (s *Sequencer) Paused() bool { return len(s.backlog) > 0 }

// overflows reports whether more blocks would exceed what may be kept unfinalized.
func (s *Sequencer) overflows() bool { return s.chain.UnfinalizedBytes > maxUnfinalizedBytes }

// knows reports whether a status is about a block that is not kept back.
func (s *Sequencer) knows(e *ledger.SlotStatus) bool {
	return e.Slot <= s.chain.Finalized.Slot() || s.chain.BlockFor(e) != nil
}

func (s *Sequencer) keepBack(ev ledger.Event) error {
	if s.backlogBytes > chain.MaxWaitingBytes {
		return chain.Refused("more than %d bytes of blocks are unfinalized and the source finalizes none of them", maxUnfinalizedBytes)
	}
	if !s.Paused() {
		s.config.Logger.Warn("ingest pauses: too much is unfinalized", "bytes", s.chain.UnfinalizedBytes)
	}
	s.backlog = append(s.backlog, ev)
	s.backlogBytes += eventBytes(ev)
	return nil
}

// eventBytes estimates what an event takes in memory.
func eventBytes(ev ledger.Event) int {
	if sized, ok := ev.(interface{ SizeBytes() int }); ok {
		return sized.SizeBytes()
	}
	return 64 // a status
}
