package sequencer

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"ledgerd/engine/chain"
	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// maxBases is how many base states are remembered: more than come while a block becomes final.
const maxBases = 4096

// decide applies one event. It drops an event that contradicts what a stream showed or what is final.
func (s *Sequencer) decide(e ledger.Event) error {
	err := s.apply(e)
	if err == nil {
		err = s.learnReached()
	}
	if wrong, ok := errors.AsType[*chain.ContradictionError](err); ok && s.chain.Stream {
		s.drop(wrong)
		return nil
	}
	return err
}

func (s *Sequencer) apply(e ledger.Event) error {
	switch e := e.(type) {
	case *ledger.Block:
		if e.Slot > ledger.MaxSlot {
			return chain.Contradicts("the source shows a block at slot %d, and the last slot is %d", e.Slot, ledger.MaxSlot)
		}
		return s.block(withHeldData(s, e, func(b *ledger.Block) *[]ledger.AccountWrite { return &b.Accounts }))
	case *ledger.BaseState:
		if e.Slot > ledger.MaxSlot {
			return chain.Contradicts("the source shows base state of slot %d, and the last slot is %d", e.Slot, ledger.MaxSlot)
		}
		return s.baseState(e)
	case *ledger.SlotStatus:
		return s.status(e)
	}
	return fmt.Errorf("source emitted an event of unknown type %T", e)
}

// baseState applies base state that a source shows, once the chain has reached it, unless it came before.
func (s *Sequencer) baseState(b *ledger.BaseState) error {
	b = withHeldData(s, b, baseWrites)
	if s.await(b) || !s.noteBase(b) {
		return nil
	}
	return s.learn(b)
}

func baseWrites(b *ledger.BaseState) *[]ledger.AccountWrite { return &b.Accounts }

// Learn applies base state, which the source need not have shown, as the next record. Where nothing is unfinalized, and the
// base state does not say its level, it belongs to the finalized block from now on: every level sees it, and it is folded
// with it.
func (s *Sequencer) Learn(b *ledger.BaseState) error {
	b = withHeldData(s, b, baseWrites)
	s.noteBase(b)
	return s.learn(b)
}

func (s *Sequencer) learn(b *ledger.BaseState) error {
	tip := s.chain.Tip
	switch {
	case tip == nil:
		s.applyBase(b, nil, true)
	case b.Level == ledger.Some(ledger.Confirmed) && tip == s.chain.Confirmed:
		s.applyBase(b, tip, false)
		tip.ConfirmedAgain = s.version
	case !b.Level.Known && tip == s.chain.Finalized && !tip.Provisional:
		s.applyBase(b, tip, false)
		tip.Version = s.version
	default:
		s.applyBase(b, nil, false)
	}
	return s.finish(maxWorking)
}

// noteBase remembers base state, in the place of some that is too old to come again, and reports whether it is new. A source
// does not repeat what precedes the first block.
func (s *Sequencer) noteBase(b *ledger.BaseState) bool {
	if s.chain.Finalized == nil {
		return true
	}
	digest := ledger.Hash(sha256.Sum256(codec.AppendEvent(nil, b)))
	if slices.Contains(s.bases, digest) {
		return false
	}
	if len(s.bases) == maxBases {
		s.bases = slices.Delete(s.bases, 0, maxBases/2)
	}
	s.bases = append(s.bases, digest)
	return true
}

func (s *Sequencer) block(b *ledger.Block) error {
	s.tally.Update(func(c *Counters) { c.Blocks++ })
	if s.skipVotes {
		b = b.WithoutVotes()
	}
	switch f := s.chain.Finalized; {
	case f != nil && b.Slot <= f.Slot():
		return s.belowFinalized(b)
	case b.ParentSlot >= b.Slot && b.Slot > 0: // a genesis block may name itself
		return chain.Contradicts("block %d names slot %d as its parent", b.Slot, b.ParentSlot)
	case f == nil && !s.chain.Stream:
		return s.first(b)
	}
	n, p, err := s.chain.Place(b)
	if err != nil {
		return err
	}
	switch p {
	case chain.Duplicate:
		s.tally.Update(func(c *Counters) { c.Duplicates++ })
		if n != nil {
			return s.raise(n, b.Status)
		}
	case chain.Orphaned:
		s.countOrphan()
	case chain.Placed:
		if s.chain.Stream && s.chain.IsContested(b.Slot) {
			s.verdict.Contradictions++
		}
		return s.join(n)
	case chain.Waits:
		return s.passGaps(false)
	}
	return nil
}

func (s *Sequencer) countOrphan() { s.tally.Update(func(c *Counters) { c.Orphans++ }) }

// first makes b the first block, which is final. Then the waiting blocks that build on it join the tree.
func (s *Sequencer) first(b *ledger.Block) error {
	if err := s.begin(b); err != nil {
		return err
	}
	n := s.chain.Tip
	s.verdict.Placed++
	s.finalize(n, false)
	return s.linkWaiting(n)
}

// begin appends the first block ever, which is trusted.
func (s *Sequencer) begin(b *ledger.Block) error {
	if err := s.checkRoot(b.Blockhash); err != nil {
		return err
	}
	s.rootHash = ledger.Some(b.Blockhash)
	return s.append(s.chain.Begin(b))
}

// otherBlock is the error for a source that raises another block at a slot than the one that is final there.
const otherBlock = "the source calls another block at slot %d %s, below the finalized slot %d: another ledger, or a fork below finality"

// finalFrom returns the finalized block at a slot that finality has passed or, if there is none, the next one above; nil
// if it is not held.
func (s *Sequencer) finalFrom(slot ledger.Slot) *ledger.Block {
	if f := s.chain.Finalized; f.Slot() == slot {
		return f.Block // that of an import is not retained
	}
	if i := s.retained.blocks.FirstFrom(slot); i < len(s.retained.blocks) {
		return s.retained.blocks[i].Block
	}
	return nil
}

// belowFinalized handles a block that finality has passed: it is the one held, or an
// orphan that comes again, or the source contradicts what is final.
func (s *Sequencer) belowFinalized(b *ledger.Block) error {
	final := s.finalFrom(b.Slot)
	filled := final != nil && final.Slot == b.Slot
	skipped := final != nil && final.ParentSlot < b.Slot && b.Slot >= s.retained.floor
	switch {
	case filled && final.Blockhash == b.Blockhash:
		s.tally.Update(func(c *Counters) { c.Duplicates++ })
		return nil
	case b.Status >= ledger.Confirmed && (filled || skipped):
		return chain.Contradicts(otherBlock, b.Slot, b.Status, s.chain.Finalized.Slot())
	}
	s.countOrphan()
	if b.Slot == s.chain.Finalized.Slot() { // blocks that build on it are orphans too
		s.chain.Abandon(ledger.BlockID{Slot: b.Slot, Hash: b.Blockhash})
	}
	return nil
}

// consider decides whether a block that joined the tree belongs on the chain. It does if its slot is the highest and it descends
// from the newest confirmed block, or if its source says that it is confirmed or final. A dead block, or one that builds on a
// dead block, belongs there only in the second case. A child makes its parent final if the source claimed that of the parent.
func (s *Sequencer) consider(n *chain.Node) error {
	s.verdict.Placed++
	if n.IsGivenUp() {
		s.countOrphan()
	} else if s.chain.Wins(n) {
		if err := s.switchTo(n); err != nil {
			return err
		}
	}
	parent := n.Parent
	if err := s.raise(n, n.Claimed); err != nil {
		return err
	}
	if parent.Claimed == ledger.Finalized {
		if err := s.raise(parent, ledger.Finalized); err != nil {
			return err
		}
	}
	s.finalizeByDepth(FinalityDepth)
	return nil
}

// join considers a block that joined the tree, and then the waiting blocks that build on it, which thereby join the tree too.
func (s *Sequencer) join(n *chain.Node) error {
	if err := s.consider(n); err != nil {
		return err
	}
	return s.linkWaiting(n)
}

// linkWaiting moves the waiting blocks that descend from n into the tree.
func (s *Sequencer) linkWaiting(n *chain.Node) error {
	for parents := []*chain.Node{n}; len(parents) > 0; {
		parent := parents[len(parents)-1]
		child := s.chain.WaitingChild(parent.ID())
		switch {
		case child == nil:
			parents = parents[:len(parents)-1]
		case s.chain.Node(parent.ID()) != parent: // finality passed it with another child
			s.countOrphan()
			s.chain.Abandon(child.ID())
		default:
			child = s.chain.Link(child, parent)
			if err := s.consider(child); err != nil {
				return err
			}
			parents = append(parents, child)
		}
	}
	return nil
}

// switchTo makes n the tip: by appending, or by undoing the present branch first.
func (s *Sequencer) switchTo(n *chain.Node) error {
	m, err := s.chain.MoveTo(n)
	if err != nil {
		return err
	}
	if len(m.Undo) > 0 {
		from, to := s.chain.Tip.Slot(), m.Ancestor.Slot()
		s.config.Logger.Info("rollback", "from_slot", from, "to_slot", to, "blocks", len(m.Undo), "new_slot", n.Slot())
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
func (s *Sequencer) rollback(m chain.Move) error {
	s.tally.Update(func(c *Counters) { c.rolledBack(len(m.Undo)) })
	s.applyRollback(m)
	s.chain.Undone(m, s.version)
	s.config.Filler.RolledBack(m.Ancestor.Slot())
	return s.finish(maxWorking)
}

// append makes n, a child of the tip, the tip.
func (s *Sequencer) append(n *chain.Node) error {
	s.applyBlock(n)
	s.chain.Appended(n, s.version)
	s.config.Filler.Appended(n.Block)
	return s.finish(maxWorking)
}

// passGaps applies the gap rule to waiting blocks, the lowest first: to all of them, or until none waits too long. If blocks of a
// stream wait too long, it drops them all, and the stream has to show them again.
func (s *Sequencer) passGaps(all bool) error {
	if s.chain.Stream && s.chain.WaitsTooLong() {
		s.chain.Waiting = nil
		s.drop(ledger.ErrTooMuchWaits)
	}
	for s.chain.WaitsTooLong() || all && len(s.chain.Waiting) > 0 {
		n, tip := s.chain.Waiting[0], s.chain.Tip
		s.chain.Waiting = slices.Delete(s.chain.Waiting, 0, 1)
		if !s.config.Info.GapsAllowed {
			return fmt.Errorf("block %d builds on slot %d, which the source did not show after slot %d (?gaps=allow passes over it)",
				n.Slot(), n.Block.ParentSlot, tip.Slot())
		}
		if !s.chain.MayFollowGap(n) {
			s.countOrphan()
			s.chain.Abandon(n.ID())
			continue
		}
		s.config.Logger.Warn("gap: slots between are not indexed", "after_slot", tip.Slot(), "next_slot", n.Slot())
		s.tally.Update(func(c *Counters) { c.Gaps++ })
		if err := s.join(s.chain.Link(n, tip)); err != nil {
			return err
		}
	}
	return nil
}
