package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ingest"
	"ledgerd/engine/ledger"
	"ledgerd/shard"
	"ledgerd/shard/txstore"
	"ledgerd/snapshot"
	"ledgerd/snapshot/wal"
)

// recovery restores an engine from its data directory: first the newest snapshot that is
// whole, then every record of the log after it.
type recovery struct {
	node        *Engine
	verifyFirst bool               // the state hash of a snapshot is verified before it is loaded
	found       ingest.Recovered   // for the writer
	loaded      *snapshot.Snapshot // nil: none
	damage      error              // of the snapshots that were skipped
}

// run recovers what the data directory holds and runs the shards while use runs. The context of use ends with ctx
// or when a shard breaks; then run returns the error of the shard.
func (r *recovery) run(ctx context.Context, use func(context.Context) error) error {
	begun := time.Now()
	if err := r.restore(ctx); err != nil {
		return unlessEnded(ctx, fmt.Errorf("cannot recover: %w", err))
	}
	// The shards outlive the sequencer, which needs them for its last commit.
	background, stopShards := context.WithCancel(context.Background())
	defer stopShards()
	shards, broken := errgroup.WithContext(background)
	for _, s := range r.node.shards {
		shards.Go(func() error { return s.Run(broken) })
	}
	err := r.catchUp(ctx, begun)
	if err != nil {
		err = fmt.Errorf("cannot recover: %w", err)
	} else {
		using, end := context.WithCancel(ctx)
		forget := context.AfterFunc(broken, end)
		err = use(using)
		forget()
		end()
	}
	stopShards()
	if shardErr := shards.Wait(); shardErr != nil {
		return shardErr
	}
	return unlessEnded(ctx, err)
}

// restore fills the shards, which do not run yet, from the newest snapshot that is whole.
// Damaged snapshots are skipped: the log begins before the older of two snapshots, and at record 1
// as long as there are fewer than two. Snapshots share all of their history but its newest file, so a damaged file of it is no reason to
// skip a snapshot: only the blocks of that file are lost.
func (r *recovery) restore(ctx context.Context) error {
	r.node.progress.begin("opening the snapshot", 0)
	var err error
	if r.found.Store, err = snapshot.OpenStore(r.node.config.Dir.FS(), r.node.config.Dir.SnapshotDir(), r.node.config.Logger); err != nil {
		return err
	}
	r.node.store.Store(r.found.Store)
	if err := r.node.openArchive(); err != nil {
		return err
	}
	all, err := r.found.Store.List()
	if err != nil {
		return err
	}
	if id, _ := r.node.config.Dir.Cluster(); id != "" && len(all) > 0 {
		if held, err := r.node.config.Dir.HoldsRecords(ctx); err != nil {
			return err
		} else if !held {
			return fmt.Errorf("data directory %s %w", r.node.config.Dir.Path(), datadir.ErrUnfinishedBootstrap)
		}
	}
	for _, i := range all {
		err := r.restoreFrom(ctx, i)
		if err == nil {
			return nil
		}
		if !errors.Is(err, snapshot.ErrDamaged) {
			return err
		}
		r.noteDamage(i, err)
	}
	if r.node.config.Dir.Imported() == nil {
		return nil
	}
	return fmt.Errorf("%s was made by an import, which the log alone cannot restore: restore a snapshot, or import the archive again into another --data-dir: %w",
		r.node.config.Dir.Path(), cmp.Or(r.damage, errors.New("its snapshots are gone")))
}

// noteDamage logs and records that a snapshot is skipped.
func (r *recovery) noteDamage(i snapshot.Info, err error) {
	r.node.config.Logger.Warn("a snapshot is damaged and passed over", "snapshot", i.Name, "error", err)
	r.found.Damaged++
	if r.damage != nil {
		err = fmt.Errorf("%w; %w", r.damage, err)
	}
	r.damage = err
}

// restoreFrom fills the shards from one snapshot.
func (r *recovery) restoreFrom(ctx context.Context, i snapshot.Info) error {
	snap, err := r.found.Store.Salvage(i)
	if err != nil {
		return err
	}
	if r.verifyFirst {
		if err := snap.VerifyState(ctx, snapshot.Pace{}); err != nil {
			return err
		}
	}
	m := snap.Meta()
	r.node.progress.begin("loading the snapshot", m.Accounts+m.Tombstones)

	var blocks txstore.Chain
	var before ledger.Opt[ledger.Slot] // the slot of the block before the first of them
	var kind ledger.RecordKind         // of the snapshot's record
	loads, loadCtx := errgroup.WithContext(ctx)
	loads.Go(func() (err error) {
		kind, err = r.matchLog(loadCtx, m, i.Name)
		return err
	})
	loads.Go(func() error {
		return snap.Blocks(func(b snapshot.HeldBlock) error {
			if len(blocks) == 0 {
				before = b.Previous
			}
			blocks = append(blocks, r.node.stored.Pack(b.Block))
			return loadCtx.Err()
		}, func(lost snapshot.HistoryRef) {
			blocks = blocks[:blocks.FirstFrom(lost.First)]
		})
	})
	for n, s := range r.node.shards {
		loads.Go(func() error { return r.fill(loadCtx, n, s, snap) })
	}
	if err := loads.Wait(); err != nil {
		r.empty()
		return err
	}
	if r.damage != nil {
		r.node.config.Logger.Warn("the node goes on from another snapshot", "snapshot", i.Name, "blocks_from_slot", uint64(m.Floor))
	}
	r.loaded, r.found.Snapshot, r.found.Bytes = snap, m, i.Bytes
	r.node.seq.ResumeAt(m, kind, blocks, before)
	return nil
}

// empty empties all shards after some of them were restored from a damaged snapshot.
func (r *recovery) empty() {
	nothing := shard.Content{
		Accounts: func(func(*ledger.Account) bool) error { return nil },
		Mints:    func(func(ledger.MintWrite) bool) error { return nil },
	}
	for _, s := range r.node.shards {
		_ = s.Restore(nothing) // it fails only where its content does
	}
}

// fill restores one shard.
func (r *recovery) fill(ctx context.Context, n int, s *shard.Shard, snap *snapshot.Snapshot) error {
	first, last := shard.Range(n, len(r.node.shards))
	c := shard.Content{
		Version: snap.Meta().Version,
		Size:    int(snap.Meta().Accounts+snap.Meta().Tombstones) / len(r.node.shards),
		Accounts: func(visit func(*ledger.Account) bool) error {
			done := uint64(0)
			err := snap.Accounts(first, last, func(a *ledger.Account) bool {
				if done++; done%progressStep == 0 {
					r.node.progress.Update(func(p *Progress) { p.Done += progressStep })
					if ctx.Err() != nil {
						return false
					}
				}
				return visit(a)
			})
			r.node.progress.Update(func(p *Progress) { p.Done += done % progressStep })
			return errors.Join(err, ctx.Err())
		},
		Mints: func(visit func(ledger.MintWrite) bool) error {
			return snap.Mints(first, last, visit)
		},
	}
	if n == 0 {
		c.Hash = snap.Meta().StateHash // only the sum over all shards is used
	}
	return s.Restore(c)
}

// progressStep is how many accounts are loaded between two updates of progress.
const progressStep = 4096

// catchUp replays the log on the shards, which run now, and prepares the engine for new events.
func (r *recovery) catchUp(ctx context.Context, begun time.Time) error {
	if err := r.replay(ctx); err != nil {
		return err
	}
	end := r.found.Log.End()
	// The root is saved in the directory only after its record is durable.
	if end.Version() == 0 && r.found.Snapshot == nil && r.node.config.Dir.HasRoot() {
		return fmt.Errorf("%s held a ledger, of which there is no snapshot and no whole commit of the log: restore them, or start with another --data-dir", r.node.config.Dir.Path())
	}
	r.node.seq.ResumeSource()
	took := time.Since(begun)
	r.node.recoveryTook.Store(int64(took))
	r.node.progress.begin("", 0)
	if end.Version() != 0 || r.found.Snapshot != nil {
		head := r.node.seq.Head()
		tip := head.Tip(ledger.Processed)
		r.node.config.Logger.Info("recovered", "slot", uint64(tip.Slot), "seq", uint64(tip.Seq), "state_hash", head.StateHash.String(), "record", uint64(end.Version()), "log", end.String(), "took", took.Round(time.Millisecond))
	}
	return nil
}

// replay opens the log and applies what comes after the snapshot.
func (r *recovery) replay(ctx context.Context) error {
	from := ledger.Version(1) // without a snapshot the whole log is needed
	if r.found.Snapshot != nil {
		from = r.found.Snapshot.Version
		for _, p := range r.found.Snapshot.Points {
			r.node.history.Add(p.Seq, p.Final)
		}
	}
	r.node.progress.begin("replaying the log", 0)
	log, err := wal.Open(ctx, wal.Config{
		FS: r.node.config.Dir.FS(), Dir: r.node.config.Dir.LogDir(), Policy: r.node.config.Sync, SegmentBytes: r.node.config.SegmentBytes,
		OnSync: r.node.config.OnSync, Logger: r.node.config.Logger,
		OnRead: func(read, total int64) { r.node.progress.set(uint64(read), uint64(total)) },
	}, from, func(commit []wal.Entry) error {
		records := make([]*ledger.Record, 0, len(commit))
		r.found.Point = ledger.PointAfter(commit[len(commit)-1].Record)
		for i := range commit {
			switch record := commit[i].Record; {
			case r.found.Snapshot == nil || record.Version > from:
				records = append(records, record)
			case record.Version == from: // matchLog compared it
				r.found.Position = commit[i].Position
			}
		}
		if len(records) == 0 {
			return nil
		}
		if err := r.node.seq.Replay(records); err != nil {
			return err
		}
		b, err := r.node.seq.Seal()
		if err != nil {
			return err
		}
		// OnPublish gets the replayed records too, since higher commitment levels have yet to deliver them. Nobody
		// can subscribe before the first head, which is published after the log is synced.
		b.Head.Published = time.Now()
		r.node.board.Tell(&ledger.Publication{Head: b.Head, Records: b.Records})
		if b.Final {
			r.node.history.Add(b.Head.Tip(ledger.Processed).Seq, *b.Head.Tip(ledger.Finalized))
		}
		r.node.seq.Shown(b)
		r.node.seq.FoldAll() // nobody reads yet
		return nil
	})
	if errors.Is(err, wal.ErrMissing) && r.found.Snapshot == nil && r.damage != nil {
		return fmt.Errorf("no snapshot is whole, and the log does not reach back to its beginning: %w", r.damage)
	}
	if err != nil {
		return r.explain(ctx, err)
	}
	r.found.Log = log
	r.node.log.Store(log)
	end := log.End()
	r.node.history.Prune(end.Oldest()) // the log was pruned after the snapshot
	if r.found.Snapshot != nil && end.Version() < from {
		return fmt.Errorf("the log ends at record %d, before the snapshot's record %d: segments are missing", end.Version(), from)
	}
	return nil
}

// explain adds to the error of a log that cannot be replayed the log's path and the snapshots that an operator can go back to, or
// says that the loaded snapshot is at fault.
func (r *recovery) explain(ctx context.Context, err error) error {
	if !errors.Is(err, wal.ErrCorrupt) && !errors.Is(err, wal.ErrMissing) && !errors.Is(err, ledger.ErrCorrupt) {
		return err
	}
	if r.loaded != nil && errors.Is(err, ledger.ErrCorrupt) {
		if state := r.loaded.VerifyState(ctx, snapshot.Pace{}); errors.Is(state, snapshot.ErrState) {
			return fmt.Errorf("%w: the log may be whole, but the snapshot holds %w; move it away, and the start goes on from the one before", err, state)
		}
	}
	from := "there is no snapshot to go back to"
	if all, listErr := r.found.Store.List(); listErr == nil && len(all) > 0 {
		names := make([]string, len(all))
		for i := range all {
			names[i] = all[i].Name
		}
		from = "the snapshots are " + strings.Join(names, ", ")
	}
	return fmt.Errorf("%s: %w; %s", r.node.config.Dir.LogDir(), err, from)
}
