package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/shard"
	"ledgerd/snapshot"
	"ledgerd/snapshot/wal"
)

const (
	// keptSnapshots are how many snapshots are kept: where the newest is damaged, a start takes the
	// one before, and the log begins before that one.
	keptSnapshots = 2
	// lastSnapshotTimeout bounds the snapshot on the way out. Without that snapshot the next start
	// only replays more.
	lastSnapshotTimeout = 5 * time.Second
	// maxReplayBytes is how much log may gather after a snapshot before the next is due,
	// whatever the interval: it bounds how long a start takes and what the log takes on disk.
	maxReplayBytes = 1 << 30
	// logShare keeps the log from filling the disk by itself: the next snapshot is also due when
	// what it makes redundant takes this part of what is free.
	logShare = 4
	// snapshotShare is the part of a core that each goroutine takes which writes or checks a snapshot, while no
	// log gathers after it.
	snapshotShare = 0.1
)

// snapshots takes snapshots of the newest finalized block, one at a time. The goroutine of
// sequence begins them; a goroutine that snapshots owns writes them.
type snapshots struct {
	store    *snapshot.Store
	interval time.Duration // 0: only on the way out and when the log grew long
	due      time.Time

	writing sync.WaitGroup
	busy    atomic.Bool
	version ledger.Version // of the newest one taken; the writer sets it before busy ends
	logged  wal.Position   // where the log ended when the newest was begun
	stats   snapshotStats
}

// snapshotStats may be read by any goroutine.
type snapshotStats struct {
	slot, bytes, taken, failures atomic.Int64 // taken: Unix nanoseconds of the newest
	nanoseconds, count, damaged  atomic.Int64
}

// snapshotPossible reports whether there is a finalized block that no snapshot is of.
func (e *Engine) snapshotPossible() bool {
	s, n := &e.snapshots, e.seq.Chain().Finalized
	return s.store != nil && (e.config.Source != nil || e.shared.log != nil) && !e.stopped() &&
		n != nil && !n.Base && !s.busy.Load() && n.Version != s.version
}

// snapshotDue reports whether it is time for one.
func (e *Engine) snapshotDue(now time.Time) bool {
	s := &e.snapshots
	if !e.snapshotPossible() {
		return false
	}
	if s.interval > 0 && !now.Before(s.due) {
		return true
	}
	gathered, free := uint64(e.log.Stats().Position-s.logged), e.disk.free.Load()
	return gathered > maxReplayBytes || gathered > free/logShare && free >= e.wantedForSnapshot()
}

// beginSnapshot fixes what the snapshot is of, and has it written and offered. It must be possible,
// and everything that is applied must be visible.
func (e *Engine) beginSnapshot(ctx context.Context, pace snapshot.Pace, offer func(snapshot.Written) error) {
	s := &e.snapshots
	now := time.Now()
	s.due = now.Add(s.interval)
	m, blocks := e.seq.Snapshot()
	m.Taken = now
	frozen, err := e.freeze(m.Version)
	if err != nil {
		e.snapshotFailed(err)
		return
	}
	s.logged = e.log.Stats().Position // of a failed one too: the next is due a while later
	s.busy.Store(true)
	s.writing.Go(func() {
		defer s.busy.Store(false)
		written, err := e.writeSnapshot(ctx, m, frozen, blocks, pace)
		if err != nil {
			e.snapshotFailed(err)
			return
		}
		s.version = m.Version
		if err := offer(written); err != nil {
			if ctx.Err() == nil {
				e.logger.Error("a snapshot was taken, but no other node can be offered it", "error", err)
			}
			return
		}
		if err := e.pruneToSnapshots(ctx, pace); err != nil && ctx.Err() == nil {
			e.logger.Error("a snapshot was taken, but what it makes redundant is still there", "error", err)
		}
	})
}

// snapshotPace returns how fast a snapshot is taken that begins now. It leaves the cores to queries, but becomes
// faster the more log gathers, up to full speed when the next one is due: what a snapshot pins in memory grows
// with what is written.
func (e *Engine) snapshotPace() snapshot.Pace {
	began := e.log.Stats().Position
	return snapshot.Pace{Share: func() float64 {
		return snapshotShare + float64(e.log.Stats().Position-began)/maxReplayBytes
	}}
}

// freeze takes copies of all shards at one version.
func (e *Engine) freeze(v ledger.Version) ([]*shard.Frozen, error) {
	sent := make([]*shard.Freezing, len(e.shards))
	for i, s := range e.shards {
		sent[i] = s.Freeze(v)
	}
	frozen := make([]*shard.Frozen, 0, len(sent))
	var failed error
	for _, f := range sent {
		got, err := f.Wait()
		if err != nil {
			failed = err
			continue
		}
		frozen = append(frozen, got)
	}
	if failed != nil {
		release(frozen)
		return nil, fmt.Errorf("cannot copy the shards: %w", failed)
	}
	return frozen, nil
}

// release releases what the copies pin in the shards.
func release(frozen []*shard.Frozen) {
	for _, f := range frozen {
		f.Release()
	}
}

// writeSnapshot writes one, and releases what was frozen for it.
func (e *Engine) writeSnapshot(ctx context.Context, m snapshot.Meta, frozen []*shard.Frozen, blocks []snapshot.HeldBlock, pace snapshot.Pace) (written snapshot.Written, err error) {
	defer release(frozen)
	s := &e.snapshots
	// Whatever the policy: no snapshot may be newer than the log.
	if err := e.log.Sync(); err != nil {
		return written, fmt.Errorf("cannot sync the log before a snapshot: %w", err)
	}
	if err := e.requireFree(e.wantedForSnapshot()); err != nil {
		return written, err
	}
	parts := make([]snapshot.Part, len(frozen))
	for i, f := range frozen {
		parts[i] = snapshot.Part{
			Accounts: func(visit func(*ledger.Account) bool) error { f.Accounts(visit); return nil },
			Mints:    func(visit func(ledger.MintWrite) bool) error { f.Mints(visit); return nil },
		}
	}
	written, err = s.store.Write(ctx, m, parts, blocks, pace)
	if errors.Is(err, snapshot.ErrState) {
		e.fence(err) // the shards hold a wrong state
	}
	if err != nil {
		return written, err
	}
	s.stats.slot.Store(int64(written.Slot))
	s.stats.bytes.Store(written.Bytes)
	s.stats.taken.Store(m.Taken.UnixNano())
	s.stats.nanoseconds.Store(int64(written.Took))
	s.stats.count.Add(1)
	e.logger.Info("snapshot", "slot", uint64(written.Slot), "accounts", written.Meta.Accounts,
		"bytes", written.Bytes, "history_bytes", written.HistoryBytes, "took", written.Took.Round(time.Millisecond))
	return written, nil
}

// pruneToSnapshots removes older snapshots than the kept ones, and the log before the oldest of these.
func (e *Engine) pruneToSnapshots(ctx context.Context, pace snapshot.Pace) error {
	oldest, err := e.snapshots.store.Prune(ctx, keptSnapshots, pace)
	if err != nil || oldest == nil {
		return err
	}
	e.history.prune(oldest.Version)
	if err := e.log.Prune(oldest.Version); err != nil {
		return fmt.Errorf("cannot prune the log: %w", err)
	}
	return nil
}

// snapshotFailed counts and logs a snapshot that was not taken. Nothing is lost: the log is kept.
func (e *Engine) snapshotFailed(err error) {
	if errors.Is(err, context.Canceled) {
		return // the node stops: the last one follows
	}
	e.snapshots.stats.failures.Add(1)
	e.logger.Error("no snapshot was taken, the log is kept", "error", err)
}

// lastSnapshot takes one on the way out, so that the next start replays little.
func (e *Engine) lastSnapshot() {
	e.snapshots.writing.Wait()
	if !e.snapshotPossible() || !e.seq.AllShown() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastSnapshotTimeout)
	defer cancel()
	e.beginSnapshot(ctx, snapshot.Pace{}, func(snapshot.Written) error { return nil })
	e.snapshots.writing.Wait()
}
