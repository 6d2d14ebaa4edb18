package sequencer

import (
	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
)

// ahead is base state that the chain has not reached, because it was fetched from a node that is ahead of this one. If it were
// applied at once, queries would see the future, and the blocks up to its slot would report no change to subscribers.
type ahead struct {
	states  []*ledger.BaseState // in order of arrival
	bytes   int                 // that these take
	checked ledger.Slot         // the confirmed slot when the states were last checked
}

// await keeps base state until the newest confirmed block is at its After slot or above. It returns false if that is so already.
// It drops base state for which there is no room: the accounts stay unknown until they are written or fetched again.
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
	s.ahead.checked = s.chain.Confirmed.Slot()
	return true
}

// learnReached applies the base state that the chain has reached.
func (s *Sequencer) learnReached() error {
	waiting := s.ahead
	if len(waiting.states) == 0 || s.chain.Confirmed.Slot() == waiting.checked {
		return nil
	}
	s.ahead = ahead{checked: s.chain.Confirmed.Slot()}
	for _, b := range waiting.states {
		if err := s.baseState(b); err != nil {
			return err
		}
	}
	return nil
}
