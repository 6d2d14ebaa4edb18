package sequencer

import (
	"cmp"

	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
)

// answer answers a stream's question. If there is no block yet, it first begins the chain, if it can.
func (s *Sequencer) answer(q *ledger.Question) error {
	v := &s.verdict
	if q.Restart {
		s.chain.Waiting, v.Wrong = nil, nil
	}
	s.chain.ClaimParents()
	if s.chain.Finalized == nil {
		if err := s.beginStream(q.Shown); err != nil {
			return err
		}
	}
	if f := s.chain.Finalized; f != nil {
		v.Rooted, v.Root, v.Confirmed, v.Tip = true, f.ID(), s.chain.Confirmed.ID(), s.chain.Tip.ID()
		var err error
		v.Gap, err = s.chain.Gap(q.Shown.Expects)
		s.drop(err)
	}
	v.Repeated = s.Counters().Duplicates
	q.Answer <- *v
	v.Wrong = nil
	return nil
}

// drop notes err, the reason why an event was dropped, for the next answer, unless err is nil or an earlier reason is noted.
func (s *Sequencer) drop(err error) { s.verdict.Wrong = cmp.Or(s.verdict.Wrong, err) }

// beginStream makes a waiting block the first one, if there is a candidate. It refuses a candidate whose parent the stream showed
// at another slot than the candidate says.
func (s *Sequencer) beginStream(shown ledger.Shown) error {
	n := s.chain.Candidate()
	if n == nil {
		return nil
	}
	b := n.Block
	if b.PreviousBlockhash.Known && shown.ShowsElsewhere(b.PreviousBlockhash.Value, b.ParentSlot) {
		s.drop(chain.Contradicts("block %d names slot %d for its parent, which is at another slot", b.Slot, b.ParentSlot))
		return nil
	}
	return s.first(b)
}

// saysNothing reports whether a status of a stream, which is about n if it is about a block above the finalized one, says
// nothing, see [ledger.SourceInfo].
func (s *Sequencer) saysNothing(e *ledger.SlotStatus, n *chain.Node) bool {
	named := e.Blockhash.Known
	if e.Status == ledger.StatusDead {
		return !named
	}
	isConfirmed := n != nil && n.OnChain() && n.Slot() <= s.chain.Confirmed.Slot()
	return !named && !isConfirmed || s.chain.IsContested(e.Slot)
}
