package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/shard"
	"ledgerd/shard/txstore"
	"ledgerd/snapshot"
	"ledgerd/snapshot/wal"
)

// recovery brings an engine to where its data directory stands: the newest snapshot that is
// whole, and then every record of the log behind it.
type recovery struct {
	*Engine
	store *snapshot.Store
	from  *snapshot.Meta   // what the shards hold; nil where there is no snapshot
	bases []*ledger.Record // base state of the log behind it

	damage       error        // of the snapshots that were passed over
	fromPosition wal.Position // of the record in the log that from is of
	end          wal.End      // of the log
}

// restore fills the shards, which do not run yet, from the newest snapshot that is whole.
// One that is damaged is passed over: the log reaches back behind the older one, and to its
// beginning as long as there are less than two.
func (r *recovery) restore(ctx context.Context) error {
	r.progress.begin("opening the snapshot", 0)
	var err error
	if r.store, err = snapshot.OpenStore(r.config.Dir.FS(), r.config.Dir.SnapshotDir(), r.logger); err != nil {
		return err
	}
	all, err := r.store.List()
	if err != nil {
		return err
	}
	if id, _ := r.config.Dir.Cluster(); id != "" && len(all) > 0 {
		if held, err := r.config.Dir.HoldsRecords(ctx); err != nil {
			return err
		} else if !held {
			return fmt.Errorf("data directory %s %w", r.config.Dir.Path(), datadir.ErrUnfinishedBootstrap)
		}
	}
	for _, open := range []func(snapshot.Info) (*snapshot.Snapshot, error){
		r.store.Open,
		// The snapshots share most of their history: damage of that is damage of all. Better
		// without some old blocks, and say so, than without a node.
		func(i snapshot.Info) (*snapshot.Snapshot, error) { return r.store.Salvage(ctx, i) },
	} {
		for _, i := range all {
			err := r.restoreFrom(ctx, i, open)
			if err == nil {
				return nil
			}
			if !errors.Is(err, snapshot.ErrDamaged) && !errors.Is(err, ledger.ErrCorrupt) {
				return err
			}
			r.noteDamage(i, err)
		}
	}
	switch {
	case r.config.Dir.Imported() == nil:
		return nil
	case r.damage != nil: // the log begins behind it
		return fmt.Errorf("no snapshot is whole, and the first was an import's: import the archive again into another --data-dir: %w", r.damage)
	}
	return fmt.Errorf("%s was made by an import, and its snapshots are gone: restore them, or import the archive again into another --data-dir", r.config.Dir.Path())
}

// noteDamage tells of a snapshot that is passed over.
func (r *recovery) noteDamage(i snapshot.Info, err error) {
	r.logger.Warn("a snapshot is damaged and passed over", "snapshot", i.Name, "error", err)
	r.snapshots.stats.damaged.Add(1)
	if r.damage == nil {
		r.damage = err
		return
	}
	r.damage = fmt.Errorf("%w; %w", r.damage, err)
}

// restoreFrom fills the shards from one snapshot.
func (r *recovery) restoreFrom(ctx context.Context, i snapshot.Info, open func(snapshot.Info) (*snapshot.Snapshot, error)) error {
	snap, err := open(i)
	if err != nil {
		return err
	}
	m := snap.Meta()
	r.progress.begin("loading the snapshot", m.Accounts+m.Tombstones)

	var blocks []*txstore.Block
	var before ledger.Opt[ledger.Slot] // the first of them
	err = snap.Blocks(func(b snapshot.HeldBlock) error {
		if n := len(blocks); n == 0 {
			before = ledger.Opt[ledger.Slot]{Value: b.Previous, Known: b.HasPrevious}
		} else if last := blocks[n-1].Block.Slot; b.Block.Slot <= last {
			return fmt.Errorf("block %d comes after block %d: %w", b.Block.Slot, last, ledger.ErrCorrupt)
		}
		blocks = append(blocks, r.stored.Pack(b.Block))
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	loads, loadCtx := errgroup.WithContext(ctx)
	hashes := make([]ledger.StateHash, len(r.shards))
	for n, s := range r.shards {
		loads.Go(func() (err error) {
			hashes[n], err = r.fill(loadCtx, n, s, snap)
			return err
		})
	}
	err = loads.Wait()
	var held ledger.StateHash
	for _, h := range hashes {
		held.Add(h)
	}
	if err == nil && held != m.StateHash {
		err = &snapshot.DamagedError{File: i.Name, Reason: fmt.Sprintf("its accounts have the state hash %s, not %s", held, m.StateHash)}
	}
	if err != nil {
		return cmp.Or(r.empty(), err)
	}
	if r.damage != nil {
		r.logger.Warn("the node goes on from another snapshot", "snapshot", i.Name, "blocks_from_slot", uint64(m.Floor))
	}
	r.from = m
	r.snapshots.stats.bytes.Store(i.Bytes)
	r.seq.ResumeAt(m, blocks, before)
	return nil
}

// empty takes from the shards what some of them got of a snapshot whose other parts are damaged.
func (r *recovery) empty() error {
	nothing := shard.Content{
		Accounts: func(func(*ledger.Account) bool) error { return nil },
		Mints:    func(func(ledger.MintWrite) bool) error { return nil },
	}
	for _, s := range r.shards {
		if err := s.Restore(nothing); err != nil {
			return err
		}
	}
	return nil
}

// fill restores one shard, and returns the state hash of what it holds then.
func (r *recovery) fill(ctx context.Context, n int, s *shard.Shard, snap *snapshot.Snapshot) (held ledger.StateHash, err error) {
	first, last := shard.Range(n, len(r.shards))
	c := shard.Content{
		Version: snap.Meta().Version,
		Size:    int(snap.Meta().Accounts+snap.Meta().Tombstones) / len(r.shards),
		Accounts: func(visit func(*ledger.Account) bool) error {
			done := uint64(0)
			err := snap.Accounts(first, last, func(a *ledger.Account) bool {
				if done++; done%progressStep == 0 {
					r.progress.add(progressStep)
					if ctx.Err() != nil {
						return false
					}
				}
				held.Add(a.StateTerm())
				return visit(a)
			})
			r.progress.add(done % progressStep)
			return errors.Join(err, ctx.Err())
		},
		Mints: func(visit func(ledger.MintWrite) bool) error {
			return snap.Mints(first, last, func(m ledger.MintWrite) bool {
				held.Add(m.Mint.StateTerm(m.Pubkey))
				return visit(m)
			})
		},
	}
	if n == 0 {
		c.Hash = snap.Meta().StateHash // any split will do: only the sum is ever looked at
	}
	err = s.Restore(c)
	return held, err
}

// progressStep is after how many accounts progress is told: often enough for a bar.
const progressStep = 4096

// catchUp replays the log on the shards, which run now, and readies the engine to go on.
func (r *recovery) catchUp(ctx context.Context, begun time.Time) error {
	end, err := r.replay(ctx)
	if err != nil {
		return err
	}
	// The directory learned of its root only once that was durable.
	if end.Version() == 0 && r.from == nil && r.config.Dir.HasRoot() {
		return fmt.Errorf("%s held a ledger, and its log and snapshots are gone: restore them, or start with another --data-dir", r.config.Dir.Path())
	}
	r.end = end
	r.readBack(ctx)
	if tip := r.seq.Chain().Tip; tip != nil && !tip.Base {
		r.seq.ResumeSource()
	}
	s := &r.snapshots
	s.store, s.interval, s.due = r.store, r.config.SnapshotInterval, time.Now().Add(r.config.SnapshotInterval)
	if r.from != nil {
		s.version, s.logged = r.from.Version, r.fromPosition
		s.stats.taken.Store(r.from.Taken.UnixNano())
		s.stats.slot.Store(int64(r.from.Slot))
	}
	took := time.Since(begun)
	r.recoveryTook.Store(int64(took))
	r.progress.begin("", 0)
	if end.Version() != 0 || r.from != nil {
		head := r.seq.Head()
		tip := head.Tip(ledger.Processed)
		r.logger.Info("recovered", "slot", uint64(tip.Slot), "seq", uint64(tip.Seq), "state_hash", head.StateHash.String(), "record", uint64(end.Version()), "log", end.String(), "took", took.Round(time.Millisecond))
	}
	return nil
}

// replay carries out the log behind the snapshot on shards that run, and returns where the log
// ends.
func (r *recovery) replay(ctx context.Context) (wal.End, error) {
	from := ledger.Version(1) // all of it must be there
	if r.from != nil {
		from = r.from.Version
	}
	r.progress.begin("replaying the log", 0)
	end, err := wal.Replay(ctx, r.config.Dir.FS(), r.config.Dir.LogDir(), from, func(commit []wal.Entry) error {
		records := make([]*ledger.Record, 0, len(commit))
		if len(commit) > 0 {
			r.shared.from = ledger.PointAfter(commit[len(commit)-1].Record)
		}
		for i := range commit {
			switch record := commit[i].Record; {
			case r.from == nil || record.Version > from:
				records = append(records, record)
			case record.Version == from:
				if err := r.seq.MatchSnapshot(record); err != nil {
					return err
				}
				r.fromPosition = commit[i].Position
			}
		}
		if len(records) == 0 {
			return nil
		}
		if err := r.seq.Replay(records); err != nil {
			return err
		}
		b, err := r.seq.Seal()
		if err != nil {
			return err
		}
		// The hub is told, for levels that have yet to hear of it. Nobody can subscribe before the
		// first head, which comes once the log is settled.
		r.show(&batch{Batch: b}, r.tell)
		r.seq.Shown(b)
		r.seq.FoldAll() // nobody reads yet
		r.noteBases(records)
		return nil
	}, func(read, total int64) { r.progress.set(uint64(read), uint64(total)) })
	if errors.Is(err, wal.ErrMissing) && r.from == nil && r.damage != nil {
		return end, fmt.Errorf("no snapshot is whole, and the log does not reach back to its beginning: %w", r.damage)
	}
	if err != nil {
		return end, r.explain(err)
	}
	if r.from != nil && end.Version() < from {
		return end, fmt.Errorf("the log ends at record %d, before the snapshot's record %d: segments are missing", end.Version(), from)
	}
	return end, nil
}

// noteBases remembers the base state that is not part of the finalized block, for Export.
func (r *recovery) noteBases(records []*ledger.Record) {
	for _, record := range records {
		if record.Kind == ledger.BaseRecord {
			r.bases = append(r.bases, record)
		}
	}
	if f := r.seq.Chain().Finalized; f == nil {
		r.bases = nil // all of it was learned at once
	} else {
		r.bases = slices.DeleteFunc(r.bases, func(b *ledger.Record) bool { return b.Version <= f.Version })
	}
}

// explain adds to a log that cannot be replayed where it lies and what a person can go on from.
func (r *recovery) explain(err error) error {
	if !errors.Is(err, wal.ErrCorrupt) && !errors.Is(err, wal.ErrMissing) && !errors.Is(err, ledger.ErrCorrupt) {
		return err
	}
	from := "there is no snapshot to go back to"
	if all, listErr := r.store.List(); listErr == nil && len(all) > 0 {
		names := make([]string, len(all))
		for i := range all {
			names[i] = all[i].Name
		}
		from = "the snapshots are " + strings.Join(names, ", ")
	}
	return fmt.Errorf("%s: %w; %s", r.config.Dir.LogDir(), err, from)
}
