package sequencer

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"slices"

	"ledgerd/engine/chain"
	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

const (
	// maxUnfinalizedBytes bounds the blocks that are kept whole because they may be undone.
	maxUnfinalizedBytes = 1 << 30
	// maxBases is how many base states are remembered: more than come while a block becomes final.
	maxBases = 4096
)

// decider decides what each event means for the chain. What it decides is carried out and
// recorded by its applier.
type decider struct {
	applier
	chain *chain.Chain
	info  ledger.SourceInfo
	log   *slog.Logger
	tally tally
	// checkRoot refuses a root that is not the data directory's.
	checkRoot func(ledger.Hash) error
	fill      Filler

	skipVotes  bool                    // vote transactions are left out of blocks
	statusSeen bool                    // the source emitted a status
	rootHash   ledger.Opt[ledger.Hash] // of the first block, if this process applied it
	// follows is set while the records come from another node, whose source is known by its records alone: those show
	// whether it emits statuses. What the own source does is kept in the data directory.
	follows bool
	// bases are the newest base states that came after the first block: what a source shows again after a restart is not
	// learned again.
	bases [][sha256.Size]byte
}

// decide applies one event.
func (s *decider) decide(e ledger.Event) error {
	switch e := e.(type) {
	case *ledger.Block:
		if e.Slot > ledger.MaxSlot {
			return fmt.Errorf("the source shows a block at slot %d, and the last slot is %d", e.Slot, ledger.MaxSlot)
		}
		return s.block(e)
	case *ledger.BaseState:
		if e.Slot > ledger.MaxSlot {
			return fmt.Errorf("the source shows base state of slot %d, and the last slot is %d", e.Slot, ledger.MaxSlot)
		}
		if slices.Contains(s.bases, digestOf(e)) {
			return nil // it came again
		}
		return s.base(e)
	case *ledger.SlotStatus:
		return s.status(e)
	}
	return fmt.Errorf("source emitted an event of unknown type %T", e)
}

// base learns base state. Where nothing is unfinalized it belongs to the finalized block
// from now on: every level sees it, and it is folded with it.
func (s *decider) base(b *ledger.BaseState) error {
	s.applyBase(b, s.chain.Tip == nil)
	if s.chain.Finalized != nil {
		s.remember(digestOf(b))
	}
	// In a replay the tip may be known final before its status comes.
	tip := s.chain.Tip
	if tip == nil || tip != s.chain.Finalized || s.version <= tip.FinalizedBy {
		return s.finish(maxWorking)
	}
	if err := s.finish(0); err != nil {
		return err
	}
	tip.Version, tip.Seq, tip.StateHash = s.version, s.lastSeq, s.hash
	return nil
}

// remember keeps the digest of base state, in the place of one too old to come again.
func (s *decider) remember(digest [sha256.Size]byte) {
	if len(s.bases) == maxBases {
		s.bases = slices.Delete(s.bases, 0, maxBases/2)
	}
	s.bases = append(s.bases, digest)
}

// digestOf returns what tells base state apart from any other.
func digestOf(b *ledger.BaseState) [sha256.Size]byte {
	return sha256.Sum256(codec.AppendEvent(nil, b))
}

// overflows reports whether more blocks would exceed what may be kept unfinalized.
func (s *decider) overflows() bool { return s.chain.UnfinalizedBytes > maxUnfinalizedBytes }

func (s *decider) block(b *ledger.Block) error {
	s.tally.blocks.Add(1)
	if s.skipVotes {
		b = b.WithoutVotes()
	}
	if s.chain.Finalized == nil {
		if b.ParentSlot >= b.Slot && b.Slot != 0 {
			return fmt.Errorf("block %d names slot %d as its parent", b.Slot, b.ParentSlot)
		}
		return s.root(b)
	}
	if b.Slot <= s.chain.Finalized.Slot() {
		return s.belowFinalized(b)
	}
	n, p, err := s.chain.Place(b)
	if err != nil {
		return err
	}
	switch p {
	case chain.Duplicate:
		s.tally.duplicates.Add(1)
		if n != nil {
			return s.raise(n, b.Status)
		}
	case chain.Orphaned:
		s.tally.orphans.Add(1)
	case chain.Placed:
		return s.consider(n, b.Status)
	case chain.Waits:
		return s.passGaps(s.chain.Waiting.Overflows)
	}
	return nil
}

// root takes the first block ever, which is trusted and final.
func (s *decider) root(b *ledger.Block) error {
	if err := s.checkRoot(b.Blockhash); err != nil {
		return err
	}
	n := s.chain.Begin(b)
	s.retained.floor, s.rootHash = b.Slot, ledger.Some(b.Blockhash)
	if err := s.append(n); err != nil {
		return err
	}
	s.finalize(n, false)
	return nil
}

// belowFinalized handles a block that finality has passed: it is the one held, or an
// orphan that comes again, or the source contradicts what is final.
func (s *decider) belowFinalized(b *ledger.Block) error {
	if f := s.chain.Finalized; f.Base && b.Slot == f.Slot() && b.Blockhash != f.Block.Blockhash && b.Status >= ledger.Confirmed {
		return fmt.Errorf("the source calls another block at slot %d %s than the one that was imported: it shows another ledger", b.Slot, b.Status)
	}
	same, above := s.retained.at(b.Slot)
	if same != nil && same.Blockhash == b.Blockhash {
		s.tally.duplicates.Add(1)
		return nil
	}
	skipped := above != nil && above.ParentSlot < b.Slot && b.Slot >= s.retained.floor
	if b.Status >= ledger.Confirmed && (same != nil || skipped) {
		return fmt.Errorf("the source calls another block at slot %d %s, below the finalized slot %d", b.Slot, b.Status, s.chain.Finalized.Slot())
	}
	s.tally.orphans.Add(1)
	return nil
}

// consider decides whether a block that found its place belongs on the chain: on the tip
// always, beside it when its slot is higher and it builds on what is confirmed, or its source is sure of it; but
// nothing of what was called dead before its source is sure. Then it looks whether others waited for it.
func (s *decider) consider(n *chain.Node, claimed ledger.Commitment) error {
	switch {
	case s.chain.IsGivenUp(n):
		s.tally.orphans.Add(1)
	case n.Parent == s.chain.Tip || s.chain.Wins(n):
		if err := s.switchTo(n); err != nil {
			return err
		}
	}
	if err := s.raise(n, claimed); err != nil {
		return err
	}
	s.finalizeByDepth(FinalityDepth)
	for {
		child, ok := s.chain.Waiting.ChildOf(n.ID())
		switch {
		case !ok:
			return nil
		case !s.chain.Holds(n): // finality passed n with another child
			s.tally.orphans.Add(1)
			s.chain.Abandon(chain.BlockID{Slot: child.Block.Slot, Hash: child.Block.Blockhash})
		default:
			if err := s.release(child, n); err != nil {
				return err
			}
		}
	}
}

// release places a block that waited, as a child of parent.
func (s *decider) release(w chain.WaitingBlock, parent *chain.Node) error {
	n := s.chain.Attach(w.Block, parent)
	claimed := w.Block.Status
	switch w.Status {
	case ledger.StatusConfirmed:
		claimed = max(claimed, ledger.Confirmed)
	case ledger.StatusFinalized:
		claimed = ledger.Finalized
	}
	return s.consider(n, claimed)
}

// switchTo makes n the tip: by appending, or by undoing the present branch first.
func (s *decider) switchTo(n *chain.Node) error {
	m, err := s.chain.MoveTo(n)
	if err != nil {
		return err
	}
	if len(m.Undo) > 0 {
		s.log.Info("rollback", "from_slot", s.chain.Tip.Slot(), "to_slot", m.Ancestor.Slot(), "blocks", len(m.Undo), "new_slot", n.Slot())
		if err := s.rollback(m); err != nil {
			return err
		}
	}
	for _, a := range m.Add {
		if err := s.append(a); err != nil {
			return err
		}
	}
	return nil
}

// rollback undoes the newest blocks of the chain.
func (s *decider) rollback(m chain.Move) error {
	s.tally.rolledBack(len(m.Undo))
	s.applyRollback(m)
	s.chain.Undone(m, s.version)
	s.fill.RolledBack(m.Ancestor.Slot())
	return s.finish(maxWorking)
}

func (s *decider) append(n *chain.Node) error {
	s.applyBlock(n)
	s.chain.Appended(n, s.version)
	s.fill.Appended(n.Block)
	return s.finish(maxWorking)
}

// passGaps applies the gap rule to blocks that wait, while they wait too long.
func (s *decider) passGaps(tooLong func() bool) error {
	for tooLong() {
		w, ok := s.chain.Waiting.Lowest()
		if !ok {
			return nil
		}
		if !s.info.GapsAllowed {
			return fmt.Errorf("block %d builds on slot %d, which the source did not show after slot %d (?gaps=allow passes over it)",
				w.Block.Slot, w.Block.ParentSlot, s.chain.Tip.Slot())
		}
		if !s.chain.MayFollowGap(w.Block) {
			s.tally.orphans.Add(1)
			s.chain.Abandon(chain.BlockID{Slot: w.Block.Slot, Hash: w.Block.Blockhash})
			continue
		}
		s.log.Warn("gap: slots between are not indexed", "after_slot", s.chain.Tip.Slot(), "next_slot", w.Block.Slot)
		s.tally.gaps.Add(1)
		if err := s.release(w, s.chain.Tip); err != nil {
			return err
		}
	}
	return nil
}
