package sequencer

import (
	"fmt"

	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
)

// FinalityDepth is how deep a block becomes final while a source that may never tell
// has told no status yet.
const FinalityDepth = 32

func (s *decider) status(e *ledger.SlotStatus) error {
	s.statusSeen = true
	if s.chain.Finalized == nil {
		return nil
	}
	if e.Slot <= s.chain.Finalized.Slot() {
		return s.statusBelowFinalized(e)
	}
	n := s.chain.BlockFor(e)
	switch {
	case n == nil:
		s.statusOfWaiting(e)
		return nil
	case e.Status == ledger.StatusDead:
		return s.dead(n)
	case e.Status == ledger.StatusFinalized:
		return s.raise(n, ledger.Finalized)
	default:
		return s.raise(n, ledger.Confirmed)
	}
}

// knows reports whether a status is about a block that came already.
func (s *decider) knows(e *ledger.SlotStatus) bool {
	return s.chain.Finalized != nil &&
		(e.Slot <= s.chain.Finalized.Slot() || s.chain.BlockFor(e) != nil || s.chain.Waiting.BlockFor(e) != nil)
}

// statusBelowFinalized stops ingest where the source takes back what is final.
func (s *decider) statusBelowFinalized(e *ledger.SlotStatus) error {
	same, _ := s.retained.at(e.Slot)
	if same == nil {
		return nil
	}
	meant := !e.Blockhash.Known || e.Blockhash.Value == same.Blockhash
	switch {
	case meant && e.Status == ledger.StatusDead:
		return chain.Refused("the source calls slot %d dead, below the finalized slot %d", e.Slot, s.chain.Finalized.Slot())
	case !meant && e.Status != ledger.StatusDead:
		return fmt.Errorf("the source calls another block at slot %d %s, below the finalized slot %d", e.Slot, e.Status, s.chain.Finalized.Slot())
	}
	return nil
}

// statusOfWaiting remembers what is said of a block whose parent has not come.
func (s *decider) statusOfWaiting(e *ledger.SlotStatus) {
	w := s.chain.Waiting.BlockFor(e)
	switch {
	case w == nil:
		s.tally.unknownStatuses.Add(1)
	case e.Status == ledger.StatusDead:
		s.tally.dead.Add(1)
		if b := w.Block; s.chain.NoteStatus(chain.BlockID{Slot: b.Slot, Hash: b.Blockhash}, ledger.StatusDead) {
			s.applyStatus(b, ledger.StatusDead) // it may come again, after a restart too
		}
	default:
		w.Status = max(w.Status, e.Status)
	}
}

// raise makes the branch of n the chain and moves the levels up to n, unless that was done before.
func (s *decider) raise(n *chain.Node, level ledger.Commitment) error {
	if level == ledger.Processed || level == ledger.Confirmed && !s.chain.NoteStatus(n.ID(), ledger.StatusConfirmed) {
		return nil
	}
	if !n.OnChain() {
		s.chain.Revive(n)
		if err := s.switchTo(s.chain.Best(n)); err != nil {
			return err
		}
	}
	if level == ledger.Finalized && n.Slot() > s.chain.Finalized.Slot() {
		s.finalize(n, false)
	} else if n.Slot() > s.chain.Confirmed.Slot() {
		s.applyStatus(n.Block, ledger.StatusConfirmed)
		s.chain.Confirmed = n
	}
	return nil
}

// finalize makes n, on the chain, the newest finalized block, for its depth or because the source said so.
func (s *decider) finalize(n *chain.Node, byDepth bool) {
	s.stage(work{record: &ledger.Record{
		Kind: ledger.StatusRecord, Slot: n.Slot(), Hash: n.Block.Blockhash, Status: ledger.StatusFinalized, ByDepth: byDepth,
	}})
	s.finalized(n)
}

// finalized notes that the newest record made n the newest finalized block.
func (s *decider) finalized(n *chain.Node) {
	s.chain.Finalize(n)
	n.FinalizedBy = s.version
}

// finalizeByDepth makes the block so deep below the tip final, where the source never spoke of finality.
func (s *decider) finalizeByDepth(depth int) {
	if s.statusSeen || !s.info.FinalityByDepth || s.chain.Tip == nil {
		return
	}
	if n := s.chain.Below(depth); n != nil && n != s.chain.Finalized {
		s.finalize(n, true)
	}
}

// dead gives up a block with all that builds on it; the tip steps back if it was there, or to a branch that waited
// beside and is higher than what is left.
func (s *decider) dead(n *chain.Node) error {
	s.tally.dead.Add(1)
	if !s.chain.NoteStatus(n.ID(), ledger.StatusDead) {
		return nil
	}
	n.Dead = true
	if n.OnChain() {
		if err := s.switchTo(s.chain.TipWithout(n)); err != nil {
			return err
		}
	}
	s.applyStatus(n.Block, ledger.StatusDead)
	return nil
}
