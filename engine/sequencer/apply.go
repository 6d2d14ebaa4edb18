package sequencer

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
	"ledgerd/shard"
	"ledgerd/shard/txstore"
)

// maxWorking bounds the blocks that the shards have to do and that nobody waited for yet: one to
// work on and one to go on with. More would only be more memory.
const maxWorking = 2

// applier has the shards apply what the sequencer decided, and makes records and batches of it. Only the goroutine of the
// sequencer uses it.
type applier struct {
	shards    []*shard.Shard
	retention Retention

	version  ledger.Version   // of the newest record
	working  []work           // records whose shards may not be done; oldest first
	unwaited int              // of working: those that shards have to do with
	lastSeq  ledger.Seq       // of the newest update of a record that is done
	hash     ledger.StateHash // after that record
	staged   []*ledger.Record // done, and in no batch yet
	shown    ledger.Version   // of the newest record that is visible

	stored   *txstore.Store // the transactions of blocks
	retained retained
	folds    folds
	updates  atomic.Uint64 // how many there were, for anybody to read

	baseSlot ledger.Slot // the highest base state learned
	rootSlot ledger.Slot // of the first block ever
}

// work is a record, and what shards have to do before it is known what it says.
type work struct {
	record *ledger.Record
	tasks  []*shard.Task // nil: none, as with a status
	node   *chain.Node   // of a block, or that a rollback leads to; it is told what the record leads to
}

// applyBlock has the shards apply n's block.
func (a *applier) applyBlock(n *chain.Node) {
	b := n.Block
	if len(a.retained.blocks) == 0 {
		a.rootSlot, a.retained.floor = b.Slot, b.Slot
	}
	packed := a.stored.Pack(b)
	a.stored.Add(packed)
	a.retained.push(packed)
	a.stage(work{
		record: &ledger.Record{Kind: ledger.BlockRecord, Slot: b.Slot, Hash: b.Blockhash, Block: b, Time: b.Time},
		tasks:  a.send(func(s *shard.Shard, v ledger.Version) *shard.Task { return s.ApplyBlock(v, b) }),
		node:   n,
	})
}

// applyRollback has the shards restore what stood before the move's undone blocks.
func (a *applier) applyRollback(m chain.Move) {
	first := m.Undo[len(m.Undo)-1].Version
	from, to := m.Undo[0].Block, m.Ancestor.Block
	a.retained.pop(len(m.Undo))
	a.stage(work{
		record: &ledger.Record{Kind: ledger.RollbackRecord, Slot: to.Slot, Hash: to.Blockhash, FromSlot: from.Slot, Time: to.Time},
		tasks:  a.send(func(s *shard.Shard, v ledger.Version) *shard.Task { return s.Rollback(v, first) }),
		node:   m.Ancestor,
	})
}

// applyBase has the shards learn base state, without the overlay where direct says that there is no block yet. It has no
// updates.
func (a *applier) applyBase(b *ledger.BaseState, direct bool) {
	a.baseSlot = max(a.baseSlot, b.Slot)
	a.stage(work{
		record: &ledger.Record{Kind: ledger.BaseRecord, Slot: b.Slot, Base: b},
		tasks:  a.send(func(s *shard.Shard, v ledger.Version) *shard.Task { return s.ApplyBase(v, b, direct) }),
	})
}

// applyStatus records what a block came to: a level, on the chain, or its end.
func (a *applier) applyStatus(b *ledger.Block, status ledger.Status) {
	a.stage(work{record: &ledger.Record{Kind: ledger.StatusRecord, Slot: b.Slot, Hash: b.Blockhash, Status: status}})
}

// send sends all shards their work for the next version.
func (a *applier) send(work func(*shard.Shard, ledger.Version) *shard.Task) []*shard.Task {
	tasks := make([]*shard.Task, len(a.shards))
	for i, s := range a.shards {
		tasks[i] = work(s, a.version+1)
	}
	return tasks
}

// stage gives a record its version. What it says is known once its shards are done.
func (a *applier) stage(w work) {
	a.version++
	w.record.Version = a.version
	a.working = append(a.working, w)
	if w.tasks != nil {
		a.unwaited++
	}
}

// finish waits for the shards until they are busy with no more than so many records, and completes
// those before.
func (a *applier) finish(left int) error {
	for len(a.working) > 0 && (left == 0 || a.unwaited > left) {
		w := a.working[0]
		if w.tasks != nil {
			if err := a.wait(w); err != nil {
				return fmt.Errorf("cannot apply record %d at slot %d: %w", w.record.Version, w.record.Slot, err)
			}
			a.unwaited--
		}
		a.working[0] = work{} // the array lives on, the tasks must not
		a.working = a.working[1:]
		a.complete(w)
	}
	return nil
}

// wait waits for a record's shards. Their updates in shard order are in key order.
func (a *applier) wait(w work) error {
	parts := make([]*shard.Applied, len(w.tasks))
	for i, t := range w.tasks {
		done, err := t.Wait()
		if err != nil {
			return err
		}
		parts[i] = done
	}
	a.hash = ledger.StateHash{}
	for _, p := range parts {
		a.hash.Add(p.Hash)
	}
	if w.record.Kind == ledger.BaseRecord {
		return nil
	}
	join(w.record, parts)
	return nil
}

// join adds the updates of all shards to the record. Shard order is key order.
func join(r *ledger.Record, parts []*shard.Applied) {
	updates := 0
	for _, p := range parts {
		updates += len(p.Updates)
	}
	r.Updates = slices.Grow(r.Updates, updates)
	for _, p := range parts {
		r.Updates = append(r.Updates, p.Updates...)
		r.Unchanged = append(r.Unchanged, p.Unchanged...)
	}
}

// complete numbers a record's updates, and stages it.
func (a *applier) complete(w work) {
	r := w.record
	r.FirstSeq, r.StateHash = a.lastSeq+1, a.hash
	a.lastSeq += ledger.Seq(len(r.Updates))
	a.updates.Add(uint64(len(r.Updates)))
	a.staged = append(a.staged, r)
	switch n := w.node; {
	case n == nil:
	case n.Version == r.Version: // it was not undone since
		n.Seq, n.StateHash = r.LastSeq(), r.StateHash
	case n.ConfirmedAgain == r.Version:
		n.ConfirmedAgainSeq = r.LastSeq()
	}
}

// fold folds what is due, or anything finalized at once.
func (a *applier) fold(now time.Time, atOnce bool) {
	to, pruned, ok := a.folds.due(now, atOnce)
	if !ok {
		return
	}
	below := ledger.Slot(0)
	if to.Slot > a.retention.Slots {
		below = to.Slot - a.retention.Slots
	}
	for _, s := range a.shards {
		s.Fold(to.Version, below)
	}
	a.stored.Remove(pruned)
}
