package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ledgerd/engine/datadir"
	"ledgerd/engine/fill"
	"ledgerd/engine/ledger"
	"ledgerd/engine/published"
	"ledgerd/engine/sequencer"
	"ledgerd/shard"
	"ledgerd/snapshot"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/wal"
)

const (
	// EventLane bounds the events that wait for the sequencer; a source waits for room.
	EventLane = 64
	// minFreeBytes is the space below which ingest pauses: an operator has some left to work with, and the log
	// never ends in the middle of a record.
	minFreeBytes = 64 << 20
	// SpaceRetry is how often the free space of a full disk is read again.
	SpaceRetry = time.Second
)

// Config is what a writer needs.
type Config struct {
	Source  ledger.Source    // nil: no event comes
	Shared  SharedLog        // nil: the node is alone
	Dir     *datadir.Dir     // of the own log
	Shards  []*shard.Shard   // a snapshot is of their state
	Filler  *fill.Filler     // nil: nothing is fetched
	Board   *published.Board // shows what is durable
	History *published.History
	Logger  *slog.Logger
	// ResumePoint returns where the source continues, nil if there is no finalized block yet. It reads the sequencer, so
	// only the goroutine that owns that calls it.
	ResumePoint func() *ledger.ResumePoint
	// OnSnapshot is called with each snapshot that was checked, one at a time, but for the last one. No
	// snapshot is taken or removed until it returns; it returns when ctx ends at the latest. It may be nil.
	OnSnapshot func(ctx context.Context, s snapshot.Written)

	Sync             wal.Policy    // of the own log
	SnapshotInterval time.Duration // 0: a snapshot only at the end, or when the log grew long
	MinFreeBytes     uint64        // ingest pauses where less of the disk is free; 0: 64 MiB
	MaxLag           time.Duration // how long the node may not know that it holds all of Shared; 0: DefaultMaxLag
}

// Recovered is what a recovery found.
type Recovered struct {
	Source ledger.SourceInfo // of the ledger, by the source or by the data directory
	Log    *wal.Log          // the own log, to be settled
	Point  ledger.LogPoint   // the same point in the shared log

	Store    *snapshot.Store
	Snapshot *snapshot.Meta // that the recovery began with; nil: none
	Bytes    int64          // of its file
	Position wal.Position   // in the own log, of its record
	Damaged  uint64         // snapshots that were skipped
}

// Writer writes one node's log and publishes what it wrote.
type Writer struct {
	Config
	wal     *wal.Log // Recovered.Log: each batch is committed to it
	figures ledger.Guarded[SnapshotStats]
	stopped atomic.Pointer[stopError] // why ingest stopped for good, nil while it goes on
	paused  atomic.Bool               // ingest waits for finality
	seen    ledger.Guarded[time.Time] // when the source emitted a block last; zero: never

	short  atomic.Pointer[string] // why ingest waits for the disk; nil: it does not
	pauses atomic.Uint64          // how often it waited
	free   atomic.Uint64          // bytes of the disk, when they were read last

	leads     atomic.Bool               // the node is the writer of the shared log
	resigned  atomic.Bool               // the node was the writer until its disk accepted no write: it commits nothing more
	began     ledger.Guarded[time.Time] // when it began to follow the shared log; zero: not yet
	commitsAt ledger.Guarded[time.Time] // since when a commit waits for the shared log; zero: none does
}

// New returns a writer that does nothing until Run.
func New(c Config) *Writer {
	c.MaxLag, c.MinFreeBytes = cmp.Or(c.MaxLag, DefaultMaxLag), cmp.Or(c.MinFreeBytes, minFreeBytes)
	return &Writer{Config: c}
}

// Run publishes what was recovered, once that is durable, and ingests until ctx ends; then it takes a last snapshot and
// returns nil. It returns an error if something fails that an operator has to look at. At the end of a finite source it
// goes on, so that the node serves what it holds. The sequencer, in the state at the end of r.Log, belongs to Run
// until it returns.
func (w *Writer) Run(ctx context.Context, seq *sequencer.Sequencer, r Recovered) error {
	w.wal = r.Log
	snapshots := newSnapshotter(w, seq, &r)
	err := w.ingest(ctx, &loop{
		writer: w, seq: seq, info: r.Source, snapshots: snapshots, batches: make(chan *batch, 1), done: make(chan *batch, 1),
		feed: make(chan ledger.Event, EventLane), calls: make(chan call),
	}, &r)
	w.resign() // nothing is committed any more, and another node need not wait for what follows
	if err == nil {
		snapshots.takeLast()
	}
	snapshots.writing.Wait()
	return err
}

// ingest settles the log and runs the loop and the feeder until ctx ends or one of them fails.
func (w *Writer) ingest(ctx context.Context, l *loop, r *Recovered) error {
	if err := w.waitForSpace(ctx, w.wal.Settle); err != nil {
		return fmt.Errorf("cannot go on with the log: %w", err)
	}
	l.publishRecovered()
	f := feeder{loop: l, from: w.ResumePoint()}
	group, groupCtx := errgroup.WithContext(ctx)
	feeding, stopFeeding := context.WithCancel(groupCtx)
	defer stopFeeding()
	group.Go(func() error { return l.run(groupCtx, stopFeeding) })
	group.Go(func() error {
		if w.Shared != nil {
			if leads, err := f.follow(feeding, r.Point); !leads {
				return err
			}
		}
		if w.Filler != nil { // only the writer of a shared log records fetched accounts
			group.Go(func() error { w.Filler.Run(groupCtx); return nil })
		}
		return f.runSource(feeding)
	})
	return group.Wait()
}

// Stopped returns why ingest stopped for good, in words for health checks; "" while it goes on.
func (w *Writer) Stopped() string {
	if stop := w.stopped.Load(); stop != nil {
		return stop.why
	}
	return ""
}

// DiskFailure returns the disk error that stopped ingest until a restart, nil if there is none. A full disk is no
// failure.
func (w *Writer) DiskFailure() error {
	if stop := w.stopped.Load(); stop != nil && stop.disk {
		return stop
	}
	return nil
}

// Shortage returns why ingest waits for the disk, "" while it does not, and whether the node left the shared log for that.
func (w *Writer) Shortage() (why string, resigned bool) {
	if why := w.short.Load(); why != nil {
		return *why, w.resigned.Load()
	}
	return "", false
}

// DiskPauses returns how often ingest waited for the disk.
func (w *Writer) DiskPauses() uint64 { return w.pauses.Load() }

// Paused reports whether ingest waits for finality, because too much is unfinalized.
func (w *Writer) Paused() bool { return w.paused.Load() }

// SeenWithin reports whether the source emitted a block within the last d.
func (w *Writer) SeenWithin(d time.Duration) bool {
	return time.Since(w.seen.Load()) <= d
}

// Snapshots returns the figures of snapshots.
func (w *Writer) Snapshots() SnapshotStats { return w.figures.Load() }

// halted reports whether ingest stopped for good.
func (w *Writer) halted() bool { return w.stopped.Load() != nil || w.Board.FenceReason() != "" }

// resign lets another node write the shared log.
func (w *Writer) resign() {
	if w.Shared != nil {
		w.Shared.Resign()
	}
}

// heldDiffers is how a node finds out that what it holds is wrong while it follows or takes a snapshot.
const heldDiffers = "what it holds differs from the log"

// Fence stops all answers, because the state of the node is not the one that the log states: how it was found, and what differs.
func (w *Writer) Fence(how string, err error) {
	if w.Board.Fence("the node fenced itself off, " + how + ": " + err.Error()) {
		w.Logger.Error("the node fenced itself off: nothing is answered any more", "error", err)
	}
}

// waitForSpace calls try until it does not fail for lack of space. Meanwhile ingest waits, and the source with it: a
// call that failed for lack of space has done nothing, so nothing is lost. The writer of a shared log resigns after MaxLag,
// whether the disk is full or stalls. If try succeeds after that, waitForSpace returns an error that matches ledger.ErrDeposed.
func (w *Writer) waitForSpace(ctx context.Context, try func() error) error {
	if w.leads.Load() {
		defer w.giveWayUnless()()
	}
	for {
		err := try()
		if !errors.Is(err, wal.ErrNoSpace) {
			if err == nil && w.short.Swap(nil) != nil {
				w.Logger.Info("ingest goes on: the disk takes what is written again")
			}
			if err == nil && w.resigned.Load() {
				return errResigned
			}
			return err
		}
		why := "the disk is full"
		if vfs.IsOutOfFiles(err) {
			why = "no further file can be opened"
		}
		if w.short.Swap(&why) == nil {
			w.pauses.Add(1)
			w.Logger.Error(why+": ingest waits", "error", err)
		}
		select {
		case <-time.After(SpaceRetry):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// giveWayUnless lets another node write the shared log after MaxLag. The caller calls ended once its own disk has taken the write,
// which prevents that.
func (w *Writer) giveWayUnless() (ended func() bool) {
	return time.AfterFunc(w.MaxLag, func() {
		why := "the disk stalls"
		w.short.CompareAndSwap(nil, &why) // it may be full
		if !w.resigned.Swap(true) {
			w.Logger.Error("the disk has taken nothing for too long: another node may write the shared log, and this one begins anew once that has passed")
			w.resign()
		}
	}).Stop
}

// requireFree returns an error that matches wal.ErrNoSpace where fewer bytes are free.
func (w *Writer) requireFree(bytes uint64) error {
	free, err := w.Dir.FS().FreeBytes(w.Dir.Path())
	if err != nil {
		return nil // the write itself will fail if there is no space
	}
	w.free.Store(free)
	if free < bytes {
		return fmt.Errorf("%d bytes are free in %s and %d are wanted: %w", free, w.Dir.Path(), bytes, wal.ErrNoSpace)
	}
	return nil
}
