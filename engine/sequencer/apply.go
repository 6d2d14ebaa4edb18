package sequencer

import (
	"fmt"
	"slices"

	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
	"ledgerd/shard"
	"ledgerd/shard/txstore"
)

// maxWorking bounds the records that the shards may still work on while the sequencer decides: one to work on and one to
// go on with. More would only take more memory.
const maxWorking = 2

// work is a record, and the tasks of the shards that determine its updates and state hash.
type work struct {
	record *ledger.Record
	tasks  []*shard.Task // nil for a status
	node   *chain.Node   // the block whose Seq and StateHash the record determines; nil: none
}

// applyBlock has the shards apply n's block.
func (s *Sequencer) applyBlock(n *chain.Node) {
	b := n.Block
	if len(s.retained.blocks) == 0 {
		s.rootSlot, s.retained.floor = b.Slot, b.Slot
	}
	r := &ledger.Record{Kind: ledger.BlockRecord, Slot: b.Slot, Hash: b.Blockhash, Block: b, Time: b.Time}
	s.stage(r, n, func(sh *shard.Shard, at shard.Point) *shard.Task { return sh.ApplyBlock(at, b) })
	s.retain(s.config.Stored.Pack(b)) // while the shards work
}

// retain makes the newest block of the chain, and its transactions, visible to queries of the next head.
func (s *Sequencer) retain(b *txstore.Block) {
	s.config.Stored.Add(b)
	s.retained.add(b)
}

// applyRollback has the shards restore the state before the undone blocks of a move.
func (s *Sequencer) applyRollback(m chain.Move) {
	first := m.Undo[len(m.Undo)-1].Version
	from, to := m.Undo[0].Block, m.Ancestor.Block
	s.retained.pop(len(m.Undo))
	r := &ledger.Record{Kind: ledger.RollbackRecord, Slot: to.Slot, Hash: to.Blockhash, FromSlot: from.Slot, Time: to.Time}
	s.stage(r, m.Ancestor, func(sh *shard.Shard, at shard.Point) *shard.Task { return sh.Rollback(at, first) })
}

// applyBase has the shards apply base state, as a part of block n unless n is nil. direct says that there is no block yet: then
// the shards write it past the overlay.
func (s *Sequencer) applyBase(b *ledger.BaseState, n *chain.Node, direct bool) {
	s.baseSlot = max(s.baseSlot, b.Slot)
	r := &ledger.Record{Kind: ledger.BaseRecord, Slot: b.Slot, Base: b}
	s.stage(r, n, func(sh *shard.Shard, at shard.Point) *shard.Task { return sh.ApplyBase(at, b, direct) })
}

// applyStatus records a status of a block, which changes no account.
func (s *Sequencer) applyStatus(id ledger.BlockID, status ledger.Status, byDepth bool) {
	s.stage(&ledger.Record{Kind: ledger.StatusRecord, Slot: id.Slot, Hash: id.Hash, Status: status, ByDepth: byDepth}, nil, nil)
}

// stage gives a record its version and sends the shards their tasks, if it has any.
func (s *Sequencer) stage(r *ledger.Record, n *chain.Node, send func(*shard.Shard, shard.Point) *shard.Task) {
	s.version++
	r.Version, r.Horizon = s.version, ledger.Some(s.horizon)
	w := work{record: r, node: n}
	if send != nil {
		for _, sh := range s.config.Shards {
			w.tasks = append(w.tasks, send(sh, shard.Point{Version: s.version, Horizon: s.horizon}))
		}
	}
	s.working = append(s.working, w)
}

// finish completes the oldest records until the shards work on at most left of them.
func (s *Sequencer) finish(left int) error {
	for len(s.working) > left {
		w := s.working[0]
		s.working[0] = work{} // the array outlives the tasks
		s.working = s.working[1:]
		if err := s.complete(w); err != nil {
			return fmt.Errorf("cannot apply record %d at slot %d: %w", w.record.Version, w.record.Slot, err)
		}
	}
	return nil
}

// complete waits for the shards, adds their updates and the state hash to the record, and numbers the updates. Shard order
// is key order, so the updates of all shards are in key order.
func (s *Sequencer) complete(w work) error {
	r, parts, updates, hash := w.record, make([]*shard.Applied, len(w.tasks)), 0, ledger.StateHash{}
	for i, t := range w.tasks {
		var err error
		if parts[i], err = t.Wait(); err != nil {
			return err
		}
		updates += len(parts[i].Updates)
		hash.Add(parts[i].Hash)
	}
	if w.tasks != nil {
		s.hash = hash
	}
	if r.Kind != ledger.BaseRecord { // base state has no updates
		r.Updates = slices.Grow(r.Updates, updates)
		for _, p := range parts {
			r.Updates = append(r.Updates, p.Updates...)
			r.Unchanged = append(r.Unchanged, p.Unchanged...)
		}
	}
	r.FirstSeq, r.StateHash = s.lastSeq+1, s.hash
	s.lastSeq = r.LastSeq()
	s.tally.Update(func(c *Counters) {
		c.Updates += uint64(len(r.Updates))
		if r.Kind == ledger.BlockRecord {
			c.Executed += r.Block.TransactionCount
		}
	})
	s.staged = append(s.staged, r)
	switch n := w.node; {
	case n == nil:
	case n.Version == r.Version: // it was not undone since
		n.Seq, n.StateHash, n.Horizon = r.LastSeq(), r.StateHash, r.Horizon.Value
	case n.ConfirmedAgain == r.Version:
		n.ConfirmedAgainSeq = r.LastSeq()
	}
	return nil
}
