package sequencer

import (
	"fmt"

	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
)

// replayError says that the replay of a record led to another state than the record states: the log, or the state it is
// replayed on, is not what was written.
type replayError struct {
	version ledger.Version
	slot    ledger.Slot
	why     string
}

func (e *replayError) Error() string {
	return fmt.Sprintf("replay of record %d at slot %d: %s", e.version, e.slot, e.why)
}

// Is makes every replayError match ledger.ErrCorrupt.
func (e *replayError) Is(target error) bool { return target == ledger.ErrCorrupt }

// Replay applies the records of one commit of a log again, on the state before them, and compares each with the record that
// this makes. An error that matches ledger.ErrCorrupt says that they differ.
func (s *Sequencer) Replay(records []*ledger.Record) error {
	for _, r := range records {
		if r.Version != s.version+1 {
			return &replayError{r.Version, r.Slot, fmt.Sprintf("record %d is next", s.version+1)}
		}
		if err := s.redo(r); err != nil {
			return err
		}
		if err := s.finish(0); err != nil {
			return err
		}
		if len(s.staged) == 0 {
			return &replayError{r.Version, r.Slot, "it makes no record"}
		}
		if why := difference(s.staged[len(s.staged)-1], r); why != "" {
			return &replayError{r.Version, r.Slot, why}
		}
	}
	return nil
}

// Follow is Replay of a commit that another node wrote, whose log alone tells whether its source emits statuses.
func (s *Sequencer) Follow(records []*ledger.Record) error {
	s.follows = true
	if err := s.Replay(records); err != nil {
		return err
	}
	for _, r := range records {
		if r.Kind == ledger.BlockRecord {
			s.tally.blocks.Add(1)
		}
	}
	return nil
}

// MatchSnapshot compares the snapshot that the sequencer resumed at with its record in the log. It is called before the
// records after that one are replayed.
func (s *Sequencer) MatchSnapshot(r *ledger.Record) error {
	if r.StateHash != s.hash {
		return &replayError{r.Version, r.Slot, "the log is not the one the snapshot was taken of"}
	}
	if r.Kind == ledger.BaseRecord {
		// Base state is taken to a block only where that is final already. A snapshot of the
		// block's own record lies before the status that makes it final.
		s.chain.Finalized.FinalizedBy = r.Version - 1
	}
	return nil
}

// RememberPast calls walk with a function that notes records of the log before the snapshot, oldest first: their base state
// and statuses decide nothing when the source shows them again. It returns what walk returned.
func (s *Sequencer) RememberPast(walk func(note func(*ledger.Record)) error) error {
	since := s.bases
	s.bases = nil
	err := walk(func(r *ledger.Record) {
		switch {
		case r.Kind == ledger.BaseRecord:
			s.remember(digestOf(r.Base))
		case r.Kind == ledger.StatusRecord && r.Slot > s.chain.Finalized.Slot():
			s.chain.NoteStatus(chain.BlockID{Slot: r.Slot, Hash: r.Hash}, r.Status)
		}
	})
	for _, d := range since {
		s.remember(d)
	}
	return err
}

// difference says how a record that a replay made differs from the logged one, "" if it does not.
func difference(made, logged *ledger.Record) string {
	switch {
	case made.Version != logged.Version:
		return fmt.Sprintf("it should be record %d", made.Version)
	case made.FirstSeq != logged.FirstSeq || len(made.Updates) != len(logged.Updates):
		return fmt.Sprintf("it leads to updates %d to %d, the log says %d to %d", made.FirstSeq, made.LastSeq(), logged.FirstSeq, logged.LastSeq())
	case made.Slot != logged.Slot || made.Hash != logged.Hash:
		return fmt.Sprintf("it leads to slot %d, block %s", made.Slot, made.Hash)
	case made.StateHash != logged.StateHash:
		return fmt.Sprintf("it leads to state hash %s, the log says %s", made.StateHash, logged.StateHash)
	}
	return ""
}

// redo applies one record. Its decision was made when the record was; redo only checks that it is possible.
func (s *decider) redo(r *ledger.Record) error {
	n := s.chain.Node(chain.BlockID{Slot: r.Slot, Hash: r.Hash})
	switch r.Kind {
	case ledger.BlockRecord:
		return s.redoBlock(n, r)
	case ledger.RollbackRecord:
		if n == nil || !n.OnChain() || n == s.chain.Tip {
			return &replayError{r.Version, r.Slot, "it rolls back to a block that is not below the tip"}
		}
		m, err := s.chain.MoveTo(n)
		if err != nil {
			return &replayError{r.Version, r.Slot, err.Error()}
		}
		return s.rollback(m)
	case ledger.BaseRecord:
		return s.base(r.Base)
	default:
		s.stage(work{record: &ledger.Record{Kind: r.Kind, Slot: r.Slot, Hash: r.Hash, Status: r.Status, ByDepth: r.ByDepth}})
		return s.redoStatus(n, r)
	}
}

func (s *decider) redoBlock(n *chain.Node, r *ledger.Record) error {
	b := r.Block
	switch {
	case s.chain.Finalized == nil:
		if err := s.checkRoot(b.Blockhash); err != nil {
			return err
		}
		n = s.chain.Begin(b)
		s.retained.floor, s.rootHash = b.Slot, ledger.Some(b.Blockhash)
	case b.Slot <= s.chain.Tip.Slot():
		return &replayError{r.Version, r.Slot, fmt.Sprintf("it does not go on from slot %d", s.chain.Tip.Slot())}
	case n == nil:
		n = s.chain.Attach(b, s.chain.Tip)
	case n.OnChain() || n.Parent != s.chain.Tip:
		return &replayError{r.Version, r.Slot, "its block stands elsewhere"}
	}
	return s.append(n)
}

// redoStatus repeats the effect of a status on the chain. A status of a block below the state that is replayed on has none.
func (s *decider) redoStatus(n *chain.Node, r *ledger.Record) error {
	s.statusSeen = s.statusSeen || s.follows && tellsOfStatuses(n, r)
	s.chain.NoteStatus(chain.BlockID{Slot: r.Slot, Hash: r.Hash}, r.Status)
	switch {
	case s.chain.Finalized == nil:
		return &replayError{r.Version, r.Slot, "it is a status before the first block"}
	case n == nil:
	case r.Status == ledger.StatusDead:
		if n.OnChain() {
			return &replayError{r.Version, r.Slot, "it calls a block dead that is on the chain"}
		}
		n.Dead = true
	case !n.OnChain():
		return &replayError{r.Version, r.Slot, "it raises a block that is not on the chain"}
	case r.Status == ledger.StatusFinalized:
		s.finalized(n)
	case n.Slot() > s.chain.Confirmed.Slot():
		s.chain.Confirmed = n
	}
	return nil
}

// tellsOfStatuses reports whether a status record shows that the source emits statuses: the record raises its block above
// the level that it arrived with, and not because of its depth.
func tellsOfStatuses(n *chain.Node, r *ledger.Record) bool {
	switch {
	case r.Status == ledger.StatusDead:
		return true
	case n == nil:
		return false
	case r.Status == ledger.StatusConfirmed:
		return n.Block.Status < ledger.Confirmed
	}
	return !r.ByDepth && n.Block.Status < ledger.Finalized && n.Parent != nil
}
