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

// applier has the shards apply what the decider decided, and makes records and batches of it. Only the goroutine of the
// sequencer uses it, except that any goroutine may read the tally.
type applier struct {
	config Config
	tally  ledger.Guarded[Counters]

	version ledger.Version   // of the newest record
	working []work           // records whose shards may not be done; oldest first
	lastSeq ledger.Seq       // of the newest update of a record whose shards are done
	hash    ledger.StateHash // after that record
	staged  []*ledger.Record // records whose shards are done, in no batch yet
	shown   ledger.Version   // of the newest record that is visible

	retained retained
	horizon  ledger.Slot    // of the next record that writes
	folds    []fold         // oldest first
	folded   ledger.Version // of the newest tip that was ever in folds

	baseSlot ledger.Slot // the highest base state learned
	rootSlot ledger.Slot // of the first block ever
}

// work is a record, and the tasks of the shards that determine its updates and state hash.
type work struct {
	record *ledger.Record
	tasks  []*shard.Task // nil for a status
	node   *chain.Node   // the block whose Seq and StateHash the record determines; nil: none
}

// applyBlock has the shards apply n's block.
func (a *applier) applyBlock(n *chain.Node) {
	b := n.Block
	if len(a.retained.blocks) == 0 {
		a.rootSlot, a.retained.floor = b.Slot, b.Slot
	}
	r := &ledger.Record{Kind: ledger.BlockRecord, Slot: b.Slot, Hash: b.Blockhash, Block: b, Time: b.Time}
	a.stage(r, n, func(s *shard.Shard, at shard.Point) *shard.Task { return s.ApplyBlock(at, b) })
	a.retain(a.config.Stored.Pack(b)) // while the shards work
}

// retain makes the newest block of the chain, and its transactions, visible to queries of the next head.
func (a *applier) retain(b *txstore.Block) {
	a.config.Stored.Add(b)
	a.retained.blocks = append(a.retained.blocks, b)
	a.retained.bytes += b.SizeBytes()
}

// applyRollback has the shards restore the state before the undone blocks of a move.
func (a *applier) applyRollback(m chain.Move) {
	first := m.Undo[len(m.Undo)-1].Version
	from, to := m.Undo[0].Block, m.Ancestor.Block
	a.retained.pop(len(m.Undo))
	r := &ledger.Record{Kind: ledger.RollbackRecord, Slot: to.Slot, Hash: to.Blockhash, FromSlot: from.Slot, Time: to.Time}
	a.stage(r, m.Ancestor, func(s *shard.Shard, at shard.Point) *shard.Task { return s.Rollback(at, first) })
}

// applyBase has the shards learn base state, as a part of block n unless n is nil. With direct, which says that there is no
// block yet, they learn it without the overlay.
func (a *applier) applyBase(b *ledger.BaseState, n *chain.Node, direct bool) {
	a.baseSlot = max(a.baseSlot, b.Slot)
	r := &ledger.Record{Kind: ledger.BaseRecord, Slot: b.Slot, Base: b}
	a.stage(r, n, func(s *shard.Shard, at shard.Point) *shard.Task { return s.ApplyBase(at, b, direct) })
	if n != nil {
		n.Version = a.version
	}
}

// applyStatus records a status of a block, which changes no account.
func (a *applier) applyStatus(id ledger.BlockID, status ledger.Status, byDepth bool) {
	a.stage(&ledger.Record{Kind: ledger.StatusRecord, Slot: id.Slot, Hash: id.Hash, Status: status, ByDepth: byDepth}, nil, nil)
}

// stage gives a record its version and sends the shards their tasks, if it has any.
func (a *applier) stage(r *ledger.Record, n *chain.Node, send func(*shard.Shard, shard.Point) *shard.Task) {
	a.version++
	r.Version = a.version
	w := work{record: r, node: n}
	if send != nil {
		r.Horizon = ledger.Some(a.horizon)
		for _, s := range a.config.Shards {
			w.tasks = append(w.tasks, send(s, shard.Point{Version: a.version, Horizon: a.horizon}))
		}
	}
	a.working = append(a.working, w)
}

// finish completes the oldest records until only so many are left that the shards may work on.
func (a *applier) finish(left int) error {
	for len(a.working) > left {
		w := a.working[0]
		a.working[0] = work{} // the array outlives the tasks
		a.working = a.working[1:]
		if err := a.complete(w); err != nil {
			return fmt.Errorf("cannot apply record %d at slot %d: %w", w.record.Version, w.record.Slot, err)
		}
	}
	return nil
}

// complete waits for the shards, adds their updates and the state hash to the record, and numbers the updates. Shard order
// is key order, so the updates of all shards are in key order.
func (a *applier) complete(w work) error {
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
		a.hash = hash
	}
	if r.Kind != ledger.BaseRecord { // base state has no updates
		r.Updates = slices.Grow(r.Updates, updates)
		for _, p := range parts {
			r.Updates = append(r.Updates, p.Updates...)
			r.Unchanged = append(r.Unchanged, p.Unchanged...)
		}
	}
	r.FirstSeq, r.StateHash = a.lastSeq+1, a.hash
	a.lastSeq = r.LastSeq()
	a.tally.Update(func(c *Counters) {
		c.Updates += uint64(len(r.Updates))
		if r.Kind == ledger.BlockRecord {
			c.Executed += r.Block.TransactionCount
		}
	})
	a.staged = append(a.staged, r)
	switch n := w.node; {
	case n == nil:
	case n.Version == r.Version: // it was not undone since
		n.Seq, n.StateHash, n.Horizon = r.LastSeq(), r.StateHash, r.Horizon.Value
	case n.ConfirmedAgain == r.Version:
		n.ConfirmedAgainSeq = r.LastSeq()
	}
	return nil
}
