package sequencer

import (
	"slices"

	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
)

// answer tells a stream what became of its events. Where there is no block yet it begins the chain first, if it can.
func (s *decider) answer(q *ledger.Question) error {
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
	v.NewlyConfirmed, v.Wrong = nil, nil
	return nil
}

// drop has the next answer tell why an event was dropped, unless there is no error or an earlier one.
func (s *decider) drop(err error) {
	if s.verdict.Wrong == nil {
		s.verdict.Wrong = err
	}
}

// beginStream makes a waiting block the first one, if there is one that may be it and whose parent the stream did not show
// at another slot than the block says.
func (s *decider) beginStream(shown ledger.Shown) error {
	n := s.chain.Candidate()
	if n == nil {
		return nil
	}
	b := n.Block
	if b.PreviousBlockhash.Known && shown.ShowsElsewhere(b.PreviousBlockhash.Value, b.ParentSlot) {
		s.drop(chain.Contradicts("block %d names slot %d for its parent, which is at another slot", b.Slot, b.ParentSlot))
		return nil
	}
	if err := s.begin(b); err != nil {
		return err
	}
	first := s.chain.Tip
	s.verdict.Placed++
	s.confirmed(first, nil)
	s.finalize(first, false)
	return s.linkWaiting(first)
}

// saysNothing reports whether a status of a stream says nothing, see [ledger.SourceInfo].
func (s *decider) saysNothing(e *ledger.SlotStatus) bool {
	switch {
	case !s.chain.Stream:
		return false
	case e.Status == ledger.StatusDead:
		return !e.Blockhash.Known
	case !e.Blockhash.Known:
		n := s.chain.BlockFor(e)
		return n == nil || !n.OnChain() || n.Slot() > s.chain.Confirmed.Slot() || s.chain.IsContested(e.Slot)
	}
	return s.chain.IsContested(e.Slot)
}

// levelFor returns the level that a claim raises n to now: a stream's word that a block is final is kept until another
// builds on it.
func (s *decider) levelFor(n *chain.Node, claimed ledger.Commitment) ledger.Commitment {
	if s.chain.Stream && claimed == ledger.Finalized && !n.HasChildren() {
		n.Claimed = claimed
		return ledger.Confirmed
	}
	return claimed
}

// confirmed notes for the next answer to a stream that n is confirmed, with what it builds on down to a block that was so
// before.
func (s *decider) confirmed(n, before *chain.Node) {
	if !s.chain.Stream {
		return
	}
	at := len(s.verdict.NewlyConfirmed)
	for ; n != nil && n != before; n = n.Parent {
		s.verdict.NewlyConfirmed = append(s.verdict.NewlyConfirmed, n.Block)
	}
	slices.Reverse(s.verdict.NewlyConfirmed[at:])
}
