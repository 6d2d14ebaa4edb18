package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ledgerd/engine/datadir"
	"ledgerd/engine/fill"
	"ledgerd/engine/ledger"
	"ledgerd/engine/sequencer"
	"ledgerd/shard"
	"ledgerd/shard/txstore"
	"ledgerd/snapshot/wal"
)

const (
	// eventLane bounds the events that wait for the sequencer; a source waits for room.
	eventLane = 64
	// batchEvents is how many events may share one commit. Two batches are under way: one that
	// is being committed, and one that is being applied.
	batchEvents = 32
	// stallAfter is how long a live source may lead to no block before health says so.
	stallAfter = 10 * time.Second
)

// Source is where events come from.
type Source interface {
	// Info says what kind of source it is. It does not change.
	Info() ledger.SourceInfo
	// Run emits events in order until ctx ends (it returns ctx.Err()), the input ends (nil)
	// or it fails. from is nil on a fresh start.
	Run(ctx context.Context, from *ledger.ResumePoint, emit ledger.Emit) error
	// Peers returns how many upstreams are connected now.
	Peers() int
}

// Config is what an engine needs. Source may be nil: then it serves what it holds, or follows.
type Config struct {
	Source    Source
	Shared    SharedLog                 // the log that this node follows, and writes when it is its turn; nil: it is alone
	Dir       *datadir.Dir              // nil: nothing is kept, as in tests
	Log       Log                       // nil: the one in Dir or, without Dir, NullLog
	Shards    int                       // 0: one a core
	Retention sequencer.Retention       // 0: 9000 slots, 2 GiB
	Fetcher   ledger.Fetcher            // where accounts are fetched that are asked for and not held; nil: nowhere
	SkipVotes bool                      // vote transactions are not held; where Dir is tied to that they are not, either
	Filter    *ledger.Filter            // which accounts are held; nil: the one Dir is tied to, or all
	OnPublish func(*ledger.Publication) // called in order, one at a time; must not block
	Logger    *slog.Logger              // nil: slog.Default

	// OnSnapshot is told of each snapshot but the last one on the way out, one at a time, when it was
	// found to hold what it should. No other is taken and none removed until it returns, which it does
	// when ctx ends at the latest; may be nil.
	OnSnapshot func(ctx context.Context, s TakenSnapshot)

	Sync             wal.Policy          // when the log is synced; the zero value is always
	OnSync           func(time.Duration) // told how long each sync of the log took; may be nil
	SnapshotInterval time.Duration       // 0: a snapshot only on the way out, or when the log grew long
	SegmentBytes     int64               // of the log; 0: 64 MiB
	MinFreeBytes     uint64              // ingest pauses where less of the disk is free; 0: 64 MiB
	MaxLag           time.Duration       // health fails where it is longer unknown that all of Shared is held; 0: 15 s
	// Join is called before anything is recovered, where it is not nil: it may bind Dir to a cluster and put
	// another node's snapshot there. It may tell how far it is. What it cannot do ends Run.
	Join func(ctx context.Context, progress func(done, total uint64)) error
}

// Engine follows one ledger and answers questions about it. Its methods may be called
// from any goroutine, also before and after Run.
type Engine struct {
	config  Config
	known   atomic.Pointer[known]
	shards  []*shard.Shard
	stored  *txstore.Store // the transactions of blocks
	logger  *slog.Logger
	seq     *sequencer.Sequencer // touched by the goroutine of sequence alone, but for its counters
	fill    *fill.Filler         // nil: nothing is fetched
	commits committer
	store   Log // the committer writes to it, Run closes it
	shared  sharing
	started time.Time

	head  atomic.Pointer[ledger.Head]
	ready atomic.Bool // a block is visible, or nothing comes any more
	// recovery is over, and the block it led to, if any, is visible
	recoveryOver atomic.Bool
	frozen       atomic.Pointer[string]   // why ingest stopped, nil while it goes on
	diskFailure  atomic.Pointer[logError] // why it stopped where the disk failed; nil else
	paused       atomic.Bool              // ingest waits for finality
	lastSeen     atomic.Int64             // when the source showed a block last, since started; 0: never
	// when a block of this process became visible last, likewise
	lastShown atomic.Int64

	log          *wal.Log // nil without a directory
	snapshots    snapshots
	history      history
	disk         diskState
	progress     progress
	recoveryTook atomic.Int64 // nanoseconds

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each publication
}

// New returns an engine that does nothing yet.
func New(c Config) *Engine {
	if c.Shards <= 0 {
		c.Shards = runtime.GOMAXPROCS(0)
	}
	if c.MinFreeBytes == 0 {
		c.MinFreeBytes = minFreeBytes
	}
	if c.Retention.Slots == 0 {
		c.Retention.Slots = 9000
	}
	if c.Retention.Bytes == 0 {
		c.Retention.Bytes = 2 << 30
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	e := &Engine{config: c, stored: txstore.New(), logger: c.Logger, started: time.Now(), changed: make(chan struct{})}
	e.shared.log, e.shared.maxLag = c.Shared, cmp.Or(c.MaxLag, defaultMaxLag)
	e.shared.led, e.shared.fence = make(chan struct{}), make(chan struct{})
	var info ledger.SourceInfo
	if c.Source != nil {
		info = c.Source.Info()
	}
	e.known.Store(&known{info: info, filter: c.Filter, skipVotes: c.SkipVotes})
	for i := range c.Shards {
		e.shards = append(e.shards, shard.New(i, c.Shards))
	}
	if c.Fetcher != nil {
		e.fill = fill.New(fill.Config{
			Fetcher: c.Fetcher, Logger: c.Logger, Held: e.account, Head: e.Head, NextPublication: e.nextPublication,
			Frozen: func() bool { return e.frozen.Load() != nil }, Deadline: queryDeadline,
		})
	}
	e.seq = sequencer.New(sequencer.Config{
		Shards: e.shards, Stored: e.stored, Retention: c.Retention, FoldAfter: foldAfter,
		Info: info, SkipVotes: c.SkipVotes, Filler: e.fill, Logger: c.Logger,
	})
	e.learnDir()
	if c.Join != nil {
		e.progress.begin(joining, 0)
	}
	switch {
	case c.Log != nil:
		e.store = c.Log
	case c.Dir != nil:
		e.log = wal.New(wal.Config{
			FS: c.Dir.FS(), Dir: c.Dir.LogDir(), Policy: c.Sync,
			SegmentBytes: c.SegmentBytes, OnSync: c.OnSync, Logger: c.Logger,
		})
		e.store = e.log
	default:
		e.store = NullLog{}
	}
	return e
}

// Run recovers what the data directory holds, follows the source until ctx ends, and then
// returns nil, or until something fails that a person has to look at. At the end of a finite
// source it goes on serving.
func (e *Engine) Run(ctx context.Context) error {
	err := e.join(ctx)
	if err != nil || ctx.Err() != nil {
		return errors.Join(err, e.store.Close())
	}
	err = e.recovered(ctx, func(r *recovery, broken context.Context) error {
		err := e.syncRecovered(ctx, r.end)
		if err == nil {
			err = e.flow(ctx, broken)
		}
		e.shared.resign() // nothing is committed any more, and another node need not wait for what follows
		if err == nil {
			e.lastSnapshot()
		}
		e.snapshots.writing.Wait()
		return err
	})
	switch closeErr := e.store.Close(); {
	case closeErr == nil || err != nil || e.frozen.Load() != nil: // of a log that failed everybody was told
	case errors.Is(closeErr, wal.ErrNoSpace):
		e.logger.Warn("the log ends without a mark that it was closed: the disk is full", "error", closeErr)
	default:
		err = fmt.Errorf("cannot close the log: %w", closeErr)
	}
	return err
}

// recovered runs the shards with what the data directory holds for as long as use takes. The
// context that use gets ends when a shard broke.
func (e *Engine) recovered(ctx context.Context, use func(r *recovery, broken context.Context) error) error {
	r := &recovery{Engine: e}
	begun := time.Now()
	if e.log != nil {
		if err := r.restore(ctx); err != nil {
			return unlessEnded(ctx, fmt.Errorf("cannot recover: %w", err))
		}
	}
	// The shards outlive the sequencer, which needs them for its last commit.
	background, stopShards := context.WithCancel(context.Background())
	defer stopShards()
	shards, broken := errgroup.WithContext(background)
	for _, s := range e.shards {
		shards.Go(func() error { return s.Run(broken) })
	}
	var err error
	if e.log != nil {
		if err = r.catchUp(ctx, begun); err != nil {
			err = fmt.Errorf("cannot recover: %w", err)
		}
	}
	if err == nil {
		err = use(r, broken)
	}
	stopShards()
	if shardErr := shards.Wait(); shardErr != nil {
		return shardErr
	}
	return unlessEnded(ctx, err)
}

// unlessEnded returns err, but nil where it only says that ctx ended.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// flow follows the source until ctx ends, something fails, or a shard broke.
func (e *Engine) flow(ctx, broken context.Context) error {
	flow, flowCtx := errgroup.WithContext(ctx)
	events := make(chan ledger.Event, eventLane)
	if e.holdsSomething() {
		e.publish(&ledger.Publication{Head: e.seq.Head()})
	}
	if e.config.Source == nil && e.shared.log == nil {
		e.ready.Store(true)
	}
	e.recoveryOver.Store(e.head.Load() != nil || e.seq.Chain().Tip == nil)
	from := e.resumePoint()
	following, stopFollowing := context.WithCancel(flowCtx)
	defer stopFollowing()
	out := make(chan *followMsg)
	flow.Go(func() error { return e.feed(flowCtx, following, from, out, events) })
	flow.Go(func() error { return e.sequence(flowCtx, out, stopFollowing, events) })
	if e.fill != nil {
		flow.Go(func() error { e.fetch(flowCtx); return nil })
	}
	flow.Go(func() error {
		select {
		case <-broken.Done():
			return errBroken
		case <-flowCtx.Done():
			return nil
		}
	})
	return flow.Wait()
}

// fetch fetches accounts for as long as what comes of them can be learned.
func (e *Engine) fetch(ctx context.Context) {
	if e.shared.log != nil {
		select {
		case <-e.shared.led:
		case <-ctx.Done():
			return
		}
	}
	e.fill.Run(ctx)
}

// holdsSomething reports whether what was recovered is to be shown.
func (e *Engine) holdsSomething() bool {
	c := e.seq.Chain()
	if e.shared.log == nil {
		return e.config.Source == nil || c.Tip != nil
	}
	return c.Tip != nil && !c.Tip.Base && !c.Finalized.Provisional
}

// age returns for how long the engine is there, never 0.
func (e *Engine) age() int64 { return max(int64(time.Since(e.started)), 1) }

// errBroken ends the flow; the shard's own error says why.
var errBroken = errors.New("a shard broke")

// follow runs the source and closes events at the end of its input; one that fails has none.
func (e *Engine) follow(ctx context.Context, from *ledger.ResumePoint, events chan<- ledger.Event) error {
	if e.config.Source == nil {
		close(events)
		return nil
	}
	emit := func(ctx context.Context, ev ledger.Event) error {
		if _, isBlock := ev.(*ledger.Block); isBlock {
			e.lastSeen.Store(e.age())
		}
		select {
		case events <- ev:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := e.config.Source.Run(ctx, from, emit); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("source %s: %w", e.known.Load().info.Name, err)
	}
	close(events)
	return nil
}
