package ingest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/sequencer"
	"ledgerd/shard"
	"ledgerd/snapshot"
	"ledgerd/snapshot/wal"
)

const (
	// KeptSnapshots is how many snapshots are kept: if the newest is damaged, a start uses the
	// one before, and the log begins before that one.
	KeptSnapshots = 2
	// lastSnapshotTimeout bounds the last snapshot, which Run takes before it returns. Without that snapshot the next start
	// only replays more.
	lastSnapshotTimeout = 5 * time.Second
	// MaxReplayBytes is how much log may gather after a snapshot before the next is due,
	// whatever the interval: it bounds how long a start takes and what the log takes on disk.
	MaxReplayBytes = 1 << 30
	// logShare keeps the log from filling the disk: the next snapshot is also due when the log that it makes redundant
	// takes more than one part in logShare of the free space.
	logShare = 4
	// SnapshotShare is the part of a core that each goroutine takes that writes or checks a snapshot, while the
	// log does not grow.
	SnapshotShare = 0.1
	// snapshotReserve is how many times the free space of ingest a snapshot leaves: so snapshots stop before ingest pauses.
	snapshotReserve = 2
)

// SnapshotStats are the figures of snapshots.
type SnapshotStats struct {
	Slot     ledger.Slot   // of the newest
	Taken    time.Time     // when its state was fixed; zero before the first
	Bytes    int64         // of the newest
	Duration time.Duration // the newest took
	Count    uint64        // taken by this process
	Failures uint64        // failed attempts
	Damaged  uint64        // found damaged and skipped at the start
	Running  bool          // a snapshot is being taken
}

// snapshotter takes snapshots of the newest finalized block, one at a time. The owner of the sequencer calls its methods;
// take and what it calls run on a goroutine of their own.
type snapshotter struct {
	writer *Writer
	seq    *sequencer.Sequencer
	store  *snapshot.Store

	due     time.Time
	logged  wal.Position   // where the log ended when the newest was begun
	version ledger.Version // of the newest one taken; take sets it before figures say that it ended
	writing sync.WaitGroup
	ended   chan struct{} // has one waiting after a snapshot has ended: another may be due
}

func newSnapshotter(w *Writer, seq *sequencer.Sequencer, r *Recovered) *snapshotter {
	s := &snapshotter{writer: w, seq: seq, store: r.Store, due: time.Now().Add(w.SnapshotInterval), ended: make(chan struct{}, 1)}
	w.figures.Update(func(now *SnapshotStats) {
		now.Damaged = r.Damaged
		if r.Snapshot != nil {
			s.version, s.logged = r.Snapshot.Version, r.Position
			now.Slot, now.Taken, now.Bytes = r.Snapshot.Slot, r.Snapshot.Taken, r.Bytes
		}
	})
	return s
}

// possible reports whether there is a finalized block that no snapshot is of, and no snapshot is being taken.
func (s *snapshotter) possible() bool {
	n := s.seq.Chain().Finalized
	return (s.writer.Source != nil || s.writer.Shared != nil) && !s.writer.halted() &&
		n != nil && !n.Base && !s.writer.figures.Load().Running && n.Version != s.version
}

// isDue reports whether a snapshot is possible and due.
func (s *snapshotter) isDue(now time.Time) bool {
	if !s.possible() {
		return false
	}
	if s.writer.SnapshotInterval > 0 && !now.Before(s.due) {
		return true
	}
	gathered, free := uint64(s.writer.wal.Stats().Position-s.logged), s.writer.free.Load()
	return gathered > MaxReplayBytes || gathered > free/logShare && free >= s.wanted()
}

// wanted returns how many bytes must be free so that a snapshot does not take the space that the log needs.
func (s *snapshotter) wanted() uint64 {
	return snapshotReserve*s.writer.MinFreeBytes + uint64(s.writer.figures.Load().Bytes)
}

// begin copies the state of the newest finalized block and starts the goroutine that takes the snapshot. A snapshot must be
// possible, and everything that is applied must be visible. The last one is taken at full speed and not offered.
func (s *snapshotter) begin(ctx context.Context, last bool) {
	var pace snapshot.Pace
	if !last {
		pace = Pace(s.writer.wal)
	}
	now := time.Now()
	s.due = now.Add(s.writer.SnapshotInterval)
	m, blocks := s.seq.Snapshot()
	m.Taken, m.Points = now, s.writer.History.Points()
	frozen, err := shard.FreezeAll(s.writer.Shards, m.Version)
	if err != nil {
		s.failed(err)
		return
	}
	s.logged = s.writer.wal.Stats().Position // also if the snapshot fails: the next one is due some time later
	s.writer.figures.Update(func(now *SnapshotStats) { now.Running = true })
	s.writing.Go(func() {
		defer func() {
			s.writer.figures.Update(func(now *SnapshotStats) { now.Running = false })
			select {
			case s.ended <- struct{}{}:
			default:
			}
		}()
		defer shard.ReleaseAll(frozen) // also if none of it was read
		written, err := s.take(ctx, m, frozen, blocks, pace)
		if err != nil {
			s.failed(err)
			return
		}
		s.version = m.Version
		if s.writer.OnSnapshot != nil && !last && !s.writer.halted() {
			s.writer.OnSnapshot(ctx, written)
		}
		if err := s.prune(ctx, pace); err != nil && ctx.Err() == nil {
			s.writer.Logger.Error("a snapshot was taken, but what it makes redundant is still there", "error", err)
		}
	})
}

// Pace returns how fast a snapshot is taken that begins now. It leaves the cores to queries, but becomes
// faster the more log gathers, up to full speed when the next one is due: what a snapshot pins in memory grows
// with what is written.
func Pace(log *wal.Log) snapshot.Pace {
	began := log.Stats().Position
	return snapshot.Pace{Share: func() float64 {
		return SnapshotShare + float64(log.Stats().Position-began)/MaxReplayBytes
	}}
}

// take writes a snapshot, whose state hash must be the one that was updated with each write.
func (s *snapshotter) take(ctx context.Context, m snapshot.Meta, frozen []*shard.Frozen, blocks []snapshot.HeldBlock, pace snapshot.Pace) (written snapshot.Written, err error) {
	// No snapshot may be newer than the log, whatever its policy is.
	if err := s.writer.wal.Sync(); err != nil {
		return written, fmt.Errorf("cannot sync the log before a snapshot: %w", err)
	}
	if err := s.writer.requireFree(s.wanted()); err != nil {
		return written, err
	}
	parts := make([]snapshot.Part, len(frozen))
	for i, f := range frozen {
		parts[i] = snapshot.Part{
			Accounts: func(visit func(*ledger.Account) error) error { return visitAll(f.Accounts, visit) },
			Mints:    func(visit func(ledger.MintWrite) error) error { return visitAll(f.Mints, visit) },
			Release:  f.Release, // not later: reading back, the offer and pruning take long and do not read the copy
		}
	}
	written, err = s.store.Write(ctx, m, parts, blocks, pace)
	if errors.Is(err, snapshot.ErrState) {
		s.writer.Fence(heldDiffers, err) // the shards hold a wrong state
	}
	if err != nil {
		return written, err
	}
	s.writer.figures.Update(func(now *SnapshotStats) {
		now.Slot, now.Bytes, now.Taken, now.Duration = written.Slot, written.Bytes, m.Taken, written.Took
		now.Count++
	})
	s.writer.Logger.Info("snapshot", "slot", uint64(written.Slot), "accounts", written.Meta.Accounts,
		"bytes", written.Bytes, "history_bytes", written.HistoryBytes, "took", written.Took.Round(time.Millisecond))
	return written, nil
}

// visitAll calls visit with all of a sequence, until it returns an error.
func visitAll[T any](all iter.Seq[T], visit func(T) error) error {
	for v := range all {
		if err := visit(v); err != nil {
			return err
		}
	}
	return nil
}

// prune removes all but the newest KeptSnapshots, and the log before the oldest of these.
func (s *snapshotter) prune(ctx context.Context, pace snapshot.Pace) error {
	oldest, err := s.store.Prune(ctx, KeptSnapshots, pace)
	if err != nil || oldest == nil {
		return err
	}
	s.writer.History.Prune(oldest.Version)
	if err := s.writer.wal.Prune(oldest.Version); err != nil {
		return fmt.Errorf("cannot prune the log: %w", err)
	}
	return nil
}

// failed counts and logs a snapshot that was not taken. Nothing is lost: the log is kept.
func (s *snapshotter) failed(err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		s.writer.Logger.Info("a snapshot is not finished, as the node stops: without another one the next start reads more of the log")
		return
	}
	s.writer.figures.Update(func(now *SnapshotStats) { now.Failures++ })
	s.writer.Logger.Error("no snapshot was taken, the log is kept", "error", err)
}

// takeLast takes a snapshot before Run returns, so that the next start replays little.
func (s *snapshotter) takeLast() {
	s.writing.Wait()
	if !s.possible() || !s.seq.AllShown() {
		return
	}
	s.writer.Logger.Info("takes the last snapshot", "at_most", lastSnapshotTimeout)
	ctx, cancel := context.WithTimeout(context.Background(), lastSnapshotTimeout)
	defer cancel()
	s.begin(ctx, true)
	s.writing.Wait()
}
