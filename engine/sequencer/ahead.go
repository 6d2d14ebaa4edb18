package sequencer

import (
	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
)

// ahead is base state that the chain has not reached, as it was fetched from a node that is ahead of this one. Applied at once it
// would show the future, and the blocks up to its slot would tell subscribers of no change.
type ahead struct {
	states []*ledger.BaseState // in the order in which they came
	bytes  int                 // that these take
	looked ledger.Slot         // the confirmed slot at which it was looked what is reached
}

// await keeps base state until the confirmed block is at its slot or above, and reports whether it is not yet. What does not find room is passed
// over, and stays unknown until it is written or asked for again.
func (s *Sequencer) await(b *ledger.BaseState) bool {
	if s.chain.Confirmed == nil || b.After <= s.chain.Confirmed.Slot() {
		return false
	}
	size := b.SizeBytes()
	if int64(s.ahead.bytes+size) > s.config.within(chain.MaxWaitingBytes, keptBackShare) {
		s.config.Logger.Warn("accounts were fetched for slots that the chain has not reached, and too many wait: some stay unknown", "slot", uint64(b.Slot), "accounts", len(b.Accounts))
		return true
	}
	s.ahead.states, s.ahead.bytes = append(s.ahead.states, b), s.ahead.bytes+size
	s.ahead.looked = s.chain.Confirmed.Slot()
	return true
}

// learnReached applies the base state that the chain has reached.
func (s *Sequencer) learnReached() error {
	waiting := s.ahead
	if len(waiting.states) == 0 || s.chain.Confirmed.Slot() == waiting.looked {
		return nil
	}
	s.ahead = ahead{looked: s.chain.Confirmed.Slot()}
	for _, b := range waiting.states {
		if err := s.baseState(b); err != nil {
			return err
		}
	}
	return nil
}
