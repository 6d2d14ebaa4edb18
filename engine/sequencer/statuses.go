package sequencer

import (
	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
)

// FinalityDepth is how many blocks below the tip a block becomes final while a source that may emit no statuses has not
// emitted any.
const FinalityDepth = 32

func (s *Sequencer) status(e *ledger.SlotStatus) error {
	s.statusSeen = true
	n, f := s.chain.BlockFor(e), s.chain.Finalized
	switch {
	case f == nil && !s.chain.Stream, s.chain.Stream && s.saysNothing(e, n):
		return nil
	case f != nil && e.Slot <= f.Slot():
		return s.statusBelowFinalized(e)
	case n == nil && !s.chain.Stream && e.Status == ledger.StatusFinalized && s.chain.IsOrphan(e):
		return chain.Contradicts("the source calls slot %d finalized, whose block is on no branch with the finalized slot %d: another ledger, or a fork below finality", e.Slot, f.Slot())
	case n == nil:
		return nil
	case e.Status == ledger.StatusDead:
		return s.dead(n)
	}
	return s.raise(n, levelOf(e.Status))
}

// levelOf returns the level that a status, which is not StatusDead, raises a block to.
func levelOf(s ledger.Status) ledger.Commitment {
	if s == ledger.StatusFinalized {
		return ledger.Finalized
	}
	return ledger.Confirmed
}

// statusBelowFinalized returns an error where the source takes back what is final.
func (s *Sequencer) statusBelowFinalized(e *ledger.SlotStatus) error {
	final := s.finalFrom(e.Slot)
	filled := final != nil && final.Slot == e.Slot
	same := filled && (!e.Blockhash.Known || e.Blockhash.Value == final.Blockhash)
	switch {
	case s.chain.Stream && e.Slot < s.chain.Finalized.Slot(): // a stream may show a wrong block again that was passed since
	case same && e.Status == ledger.StatusDead && s.chain.Stream:
		s.verdict.Contradictions++
	case same && e.Status == ledger.StatusDead:
		return chain.Refused("the source calls slot %d dead, below the finalized slot %d", e.Slot, s.chain.Finalized.Slot())
	case filled && !same && e.Status != ledger.StatusDead:
		return chain.Contradicts(otherBlock, e.Slot, e.Status, s.chain.Finalized.Slot())
	}
	return nil
}

// raise makes the branch of n the chain and moves the levels up to n, unless that was done before. For a waiting block it only
// notes the level as claimed. If a stream says that a block is final and no other block builds on it, raise notes that as claimed
// and confirms the block. A stream may confirm a block after it called it dead.
func (s *Sequencer) raise(n *chain.Node, level ledger.Commitment) error {
	switch {
	case n.Parent == nil: // it waits for its parent
		n.Claimed = max(n.Claimed, level)
		return nil
	case s.chain.Stream && level == ledger.Finalized && !n.HasChildren():
		n.Claimed, level = level, ledger.Confirmed
	}
	repeated := level == ledger.Confirmed && !s.chain.NoteStatus(n.ID(), ledger.StatusConfirmed)
	if level == ledger.Processed || repeated && !s.chain.Stream {
		return nil
	}
	if !n.OnChain() {
		if err := s.switchTo(n.Best()); err != nil {
			return err
		}
	}
	if level == ledger.Finalized && n.Slot() > s.chain.Finalized.Slot() {
		s.finalize(n, false)
	} else if n.Slot() > s.chain.Confirmed.Slot() {
		s.applyStatus(n.ID(), ledger.StatusConfirmed, false)
		s.chain.Confirmed = n
	}
	return nil
}

// finalize makes n, on the chain, the newest finalized block, for its depth or because the source said so.
func (s *Sequencer) finalize(n *chain.Node, byDepth bool) {
	s.raiseHorizon(n.Slot())
	s.applyStatus(n.ID(), ledger.StatusFinalized, byDepth)
	s.chain.Finalize(n)
}

// raiseHorizon raises the horizon for a slot that becomes final: closings are known for as many slots as blocks are held.
func (s *Sequencer) raiseHorizon(finalized ledger.Slot) {
	s.horizon = max(s.horizon, s.config.Retention.horizon(finalized))
}

// finalizeByDepth finalizes the block so many blocks below the tip if the source may emit no statuses and emitted none.
func (s *Sequencer) finalizeByDepth(depth int) {
	if s.statusSeen || !s.config.Info.FinalityByDepth {
		return
	}
	n := s.chain.Tip
	for ; n != nil && depth > 0; depth-- {
		n = n.Parent
	}
	if n != nil && n != s.chain.Finalized {
		s.finalize(n, true)
	}
}

// dead gives up a block, in the tree or waiting, with all that builds on it. If it was on the chain, the tip steps back to
// its parent, or to a higher block beside the chain.
func (s *Sequencer) dead(n *chain.Node) error {
	s.tally.Update(func(c *Counters) { c.Dead++ })
	if s.chain.Finalized == nil { // the log has no status before the first block
		n.Dead = true
		return nil
	}
	if !s.chain.NoteStatus(n.ID(), ledger.StatusDead) {
		if n.OnChain() { // it was confirmed since
			s.verdict.Contradictions++
		}
		return nil
	}
	n.Dead = true
	if n.OnChain() {
		if err := s.switchTo(s.chain.TipWithout(n)); err != nil {
			return err
		}
	}
	s.applyStatus(n.ID(), ledger.StatusDead, false) // the block may come again, after a restart too
	return nil
}
