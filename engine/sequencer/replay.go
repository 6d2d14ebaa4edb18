package sequencer

import (
	"fmt"

	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
)

// mismatchError says that the replay of a record led to another state than the record states: the log, or the state it is
// replayed on, is not what was written. It matches ledger.ErrCorrupt.
type mismatchError struct{ error }

func (mismatchError) Is(target error) bool { return target == ledger.ErrCorrupt }

func mismatch(r *ledger.Record, format string, args ...any) error {
	return mismatchError{fmt.Errorf("replay of record %d at slot %d: %s", r.Version, r.Slot, fmt.Sprintf(format, args...))}
}

// Replay applies the records of one commit of a log again, on the state before them, and compares each with the record that
// this makes. An error that matches ledger.ErrCorrupt says that they differ.
func (s *Sequencer) Replay(records []*ledger.Record) error {
	before := len(s.staged)
	for _, r := range records {
		if r.Version != s.version+1 {
			return mismatch(r, "record %d is next", s.version+1)
		}
		if err := s.redo(r); err != nil {
			return err
		}
	}
	if err := s.finish(0); err != nil {
		return err
	}
	for i, made := range s.staged[before:] {
		if err := compare(made, records[i]); err != nil {
			return err
		}
	}
	return nil
}

// Follow is Replay of a commit that another node wrote. Only the log of that node shows whether its source emits statuses.
func (s *Sequencer) Follow(records []*ledger.Record) error {
	s.follows = true
	return s.Replay(records)
}

// compare returns an error if a record that a replay made differs from the logged one.
func compare(made, logged *ledger.Record) error {
	switch {
	case made.FirstSeq != logged.FirstSeq || len(made.Updates) != len(logged.Updates):
		return mismatch(logged, "it leads to updates %d to %d, the log says %d to %d",
			made.FirstSeq, made.LastSeq(), logged.FirstSeq, logged.LastSeq())
	case made.Slot != logged.Slot || made.Hash != logged.Hash:
		return mismatch(logged, "it leads to slot %d, block %s", made.Slot, made.Hash)
	case made.StateHash != logged.StateHash:
		return mismatch(logged, "it leads to state hash %s, the log says %s", made.StateHash, logged.StateHash)
	}
	return nil
}

// redo makes a logged record again, or returns an error. Its decision was made when the log was written; redo only checks
// that it is possible.
func (s *Sequencer) redo(r *ledger.Record) error {
	id := ledger.BlockID{Slot: r.Slot, Hash: r.Hash}
	n := s.chain.Node(id)
	if r.Horizon.Known {
		s.horizon = r.Horizon.Value
	} else if r.Status == ledger.StatusFinalized {
		s.raiseHorizon(r.Slot) // an older program wrote the record: as there, closings expire by this node's own setting
	}
	switch r.Kind {
	case ledger.BlockRecord:
		return s.redoBlock(n, r)
	case ledger.RollbackRecord:
		if n == nil || !n.OnChain() || n == s.chain.Tip {
			return mismatch(r, "it rolls back to a block that is not below the tip")
		}
		m, err := s.chain.MoveTo(n)
		if err != nil {
			return mismatch(r, "%v", err)
		}
		return s.rollback(m)
	case ledger.BaseRecord:
		return s.Learn(r.Base)
	default:
		s.applyStatus(id, r.Status, r.ByDepth)
		return s.redoStatus(n, r)
	}
}

func (s *Sequencer) redoBlock(n *chain.Node, r *ledger.Record) error {
	b := r.Block
	if s.follows {
		s.tally.Update(func(c *Counters) { c.Blocks++ })
	}
	switch {
	case s.chain.Finalized == nil:
		return s.begin(b)
	case b.Slot <= s.chain.Tip.Slot():
		return mismatch(r, "it does not go on from slot %d", s.chain.Tip.Slot())
	case n == nil:
		n = s.chain.Attach(b, s.chain.Tip)
	case n.OnChain() || n.Parent != s.chain.Tip:
		return mismatch(r, "its block is not beside the chain on the tip")
	}
	return s.append(n)
}

// redoStatus repeats the effect of a status on the chain. A status of a block below the state that is replayed on has none.
func (s *Sequencer) redoStatus(n *chain.Node, r *ledger.Record) error {
	s.statusSeen = s.statusSeen || s.follows && showsStatus(n, r)
	s.chain.NoteStatus(ledger.BlockID{Slot: r.Slot, Hash: r.Hash}, r.Status)
	switch {
	case s.chain.Finalized == nil:
		return mismatch(r, "it is a status before the first block")
	case n == nil:
	case r.Status == ledger.StatusDead:
		if n.OnChain() {
			return mismatch(r, "it calls a block dead that is on the chain")
		}
		n.Dead = true
	case !n.OnChain():
		return mismatch(r, "it raises a block that is not on the chain")
	case r.Status == ledger.StatusFinalized:
		s.chain.Finalize(n)
	case n.Slot() > s.chain.Confirmed.Slot():
		s.chain.Confirmed = n
	}
	return nil
}

// showsStatus reports whether a status record shows that the source emits statuses: the record raises its block above
// the level that it arrived with, and not because of its depth or because it is the first block.
func showsStatus(n *chain.Node, r *ledger.Record) bool {
	if n == nil || r.Status == ledger.StatusDead {
		return r.Status == ledger.StatusDead
	}
	isFirst := r.Status == ledger.StatusFinalized && n.Parent == nil
	return !isFirst && !r.ByDepth && n.Block.Status < levelOf(r.Status)
}
