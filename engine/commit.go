package engine

import (
	"fmt"
	"sync/atomic"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/shard"
)

// committer carries out what the sequencer decided: on the shards, unseen, then as records
// in the log, then as one publication.
type committer struct {
	shards    []*shard.Shard
	store     Log
	retention Retention
	publish   func(*ledger.Publication)
	shown     func(seq ledger.Seq, final ledger.Tip) // told what is final after a publication

	version ledger.Version   // of the newest record
	seq     ledger.Seq       // of the newest update
	hash    ledger.StateHash // of everything applied
	staged  []*ledger.Record // applied, not yet committed
	held    held
	folds   folds
	updates atomic.Uint64 // how many there were, for anybody to read

	baseSlot ledger.Slot // the highest base state learned
	root     ledger.Slot
}

// tally counts what the sequencer saw. Anybody may read it.
type tally struct {
	blocks, rollbacks, duplicates, orphans, dead, gaps, unknownStatuses atomic.Uint64
}

// applyBlock has the shards apply n's block and stages its record.
func (c *committer) applyBlock(n *node) (*ledger.Record, error) {
	b := n.block
	h := &shard.HeldBlock{Block: b.WithoutWrites()}
	h.Previous, h.HasPrevious = c.held.previous()
	if !h.HasPrevious {
		c.root = b.Slot
	}
	done, err := c.apply(func(s *shard.Shard, v ledger.Version) *shard.Task { return s.ApplyBlock(v, b, h) })
	if err != nil {
		return nil, fmt.Errorf("cannot apply block %d: %w", b.Slot, err)
	}
	c.held.push(h.Block)
	return c.stage(ledger.Record{
		Kind: ledger.BlockRecord, Slot: b.Slot, Hash: b.Blockhash, Block: b, Time: b.Time, Updates: done.Updates,
	}), nil
}

// applyRollback has the shards restore what stood before the move's undone blocks.
func (c *committer) applyRollback(m move) error {
	first := m.undo[len(m.undo)-1].version
	from, to := m.undo[0].block, m.ancestor.block
	done, err := c.apply(func(s *shard.Shard, v ledger.Version) *shard.Task { return s.Rollback(v, first) })
	if err != nil {
		return fmt.Errorf("cannot roll back from slot %d to %d: %w", from.Slot, to.Slot, err)
	}
	c.held.pop(len(m.undo))
	c.stage(ledger.Record{
		Kind: ledger.RollbackRecord, Slot: to.Slot, Hash: to.Blockhash, FromSlot: from.Slot, Time: to.Time,
		Updates: done.Updates, Unchanged: done.Unchanged,
	})
	return nil
}

// applyBase has the shards learn base state, direct as long as there is no block. Nobody is
// told of it: it has no updates.
func (c *committer) applyBase(b *ledger.BaseState, direct bool) error {
	_, err := c.apply(func(s *shard.Shard, v ledger.Version) *shard.Task { return s.ApplyBase(v, b, direct) })
	if err != nil {
		return fmt.Errorf("cannot apply base state of slot %d: %w", b.Slot, err)
	}
	c.baseSlot = max(c.baseSlot, b.Slot)
	c.stage(ledger.Record{Kind: ledger.BaseRecord, Slot: b.Slot, Base: b})
	return nil
}

// applyStatus stages the record of what a block came to: a level, on the chain, or its end.
func (c *committer) applyStatus(b *ledger.Block, status ledger.Status) {
	c.stage(ledger.Record{Kind: ledger.StatusRecord, Slot: b.Slot, Hash: b.Blockhash, Status: status})
}

// apply sends work for the next version to all shards and waits for them. Their updates in
// shard order are in key order.
func (c *committer) apply(send func(*shard.Shard, ledger.Version) *shard.Task) (shard.Applied, error) {
	tasks := make([]*shard.Task, len(c.shards))
	for i, s := range c.shards {
		tasks[i] = send(s, c.version+1)
	}
	parts := make([]shard.Applied, len(tasks))
	updates, unchanged := 0, 0
	for i, t := range tasks {
		done, err := t.Wait()
		if err != nil {
			return shard.Applied{}, err
		}
		parts[i] = *done
		updates, unchanged = updates+len(done.Updates), unchanged+len(done.Unchanged)
	}
	all := shard.Applied{
		Updates:   make([]ledger.Update, 0, updates),
		Unchanged: make([]ledger.Account, 0, unchanged),
	}
	for _, p := range parts {
		all.Updates = append(all.Updates, p.Updates...)
		all.Unchanged = append(all.Unchanged, p.Unchanged...)
		all.Hash.Add(p.Hash)
	}
	c.hash = all.Hash
	return all, nil
}

// stage numbers a record and its updates.
func (c *committer) stage(r ledger.Record) *ledger.Record {
	c.version++
	r.Version, r.FirstSeq, r.StateHash = c.version, c.seq+1, c.hash
	c.seq += ledger.Seq(len(r.Updates))
	c.updates.Add(uint64(len(r.Updates)))
	c.staged = append(c.staged, &r)
	return &r
}

// commit makes everything staged durable and then visible, at once. Where there was no space
// for it, it may be called again.
func (c *committer) commit(chain *chain) error {
	if len(c.staged) == 0 {
		return nil
	}
	if err := c.store.Commit(c.staged); err != nil {
		return &logError{chain.tipSlot(), err}
	}
	c.show(chain, time.Now())
	return nil
}

// show publishes what is staged, which is durable.
func (c *committer) show(chain *chain, now time.Time) {
	head := c.head(chain, now)
	if head.HasBlock {
		pruned := c.held.prune(c.retention, head.Tips[ledger.Finalized].Slot, head.Tips[ledger.Processed].Slot)
		head.Floor = c.held.floor
		c.folds.add(head.Tips[ledger.Finalized], pruned, now)
	}
	c.publish(&ledger.Publication{Head: head, Records: c.staged})
	// In a replay the first block is not yet final at the time that is replayed.
	if f := chain.finalized; f != nil && f.finalizedBy <= c.version {
		c.shown(c.seq, head.Tips[ledger.Finalized])
	}
	c.staged = nil // it was handed over
}

// head describes what is visible once everything applied is durable.
func (c *committer) head(chain *chain, now time.Time) *ledger.Head {
	h := &ledger.Head{StateHash: c.hash, Published: now, Root: c.root, Floor: c.held.floor}
	if chain.tip == nil {
		for i := range h.Tips {
			h.Tips[i] = ledger.Tip{Version: c.version, Slot: c.baseSlot}
		}
		return h
	}
	h.HasBlock = true
	for i, n := range []*node{chain.tip, chain.confirmed, chain.finalized} {
		h.Tips[i] = ledger.Tip{Version: n.version, Slot: n.slot(), Hash: n.block.Blockhash, Seq: n.seq, Time: n.block.Time}
	}
	// A rollback or base state may lie above the tip's own record.
	h.Tips[ledger.Processed].Version, h.Tips[ledger.Processed].Seq = c.version, c.seq
	return h
}

// foldDue folds what nobody can be reading below any more, or anything finalized where the
// overlays hold too much.
func (c *committer) foldDue(now time.Time) {
	var cells int64
	for _, s := range c.shards {
		cells += s.Counters().OverlayCells.Load()
	}
	c.fold(now, cells > maxOverlayCells)
}

// fold folds what is due, or anything finalized at once.
func (c *committer) fold(now time.Time, atOnce bool) {
	to, pruned, ok := c.folds.due(now, atOnce)
	if !ok {
		return
	}
	below := ledger.Slot(0)
	if to.Slot > c.retention.Slots {
		below = to.Slot - c.retention.Slots
	}
	for _, s := range c.shards {
		s.Fold(to.Version, pruned, below)
	}
}
