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

	"ledgerd/engine/datadir"
	"ledgerd/engine/fill"
	"ledgerd/engine/ingest"
	"ledgerd/engine/ledger"
	"ledgerd/engine/published"
	"ledgerd/engine/reader"
	"ledgerd/engine/sequencer"
	"ledgerd/shard"
	"ledgerd/shard/txstore"
	"ledgerd/snapshot"
	"ledgerd/snapshot/wal"
)

const (
	// queryDeadline is how long a query may take after its version is fixed.
	queryDeadline = 2 * time.Second
	// foldAfter is how long a version stays readable after it stopped being the newest
	// finalized one: longer than any query that started before.
	foldAfter = queryDeadline + 250*time.Millisecond
)

// Config is what an engine needs. Source may be nil: then the engine serves what it holds, or follows.
type Config struct {
	Source    ledger.Source
	Shared    ingest.SharedLog    // the log that the node follows, and writes when it is its turn; nil: the node is alone
	Dir       *datadir.Dir        // it is bound to what is held of the ledger
	Shards    int                 // 0: one for each core
	Retention sequencer.Retention // 0: 9000 slots, 2 GiB; an eighth of MemoryLimit, if that is less
	Fetcher   ledger.Fetcher      // fetches accounts that a query names and that are not held; nil: none are fetched
	MintsOnly bool                // Fetcher fetches only mints that a stream shows in part, and nothing for queries
	FetchUpTo int64               // how many accounts may be held before no more are fetched; 0: any number
	MayFetch  func() bool         // whether there is memory for what is fetched; nil: always
	// MemoryLimit is what the process may take, in bytes; 0: as much as it wants. The unfinalized part of the ledger takes a
	// share of it, and ingest pauses at that.
	MemoryLimit int64
	IndexMints  bool                      // the token accounts of a mint are listed, too
	OnPublish   func(*ledger.Publication) // called in order, one at a time; must not block
	Logger      *slog.Logger              // nil: slog.Default

	// OnSnapshot is called with each snapshot but the last; see ingest.Config. It may be nil.
	OnSnapshot       func(context.Context, snapshot.Written)
	Sync             wal.Policy          // when the log is synced; the zero value is always
	OnSync           func(time.Duration) // gets how long each sync of the log took; may be nil
	SnapshotInterval time.Duration       // 0: a snapshot only at the end, or when the log grew long
	SegmentBytes     int64               // of the log; 0: 64 MiB
	HistoryBytes     int64               // of finalized blocks that stay on disk once memory drops them; 0: none do
	HistoryBlocks    int                 // how many of them wait before they are written; 0: 256
	MinFreeBytes     uint64              // ingest pauses where less of the disk is free; 0: 64 MiB
	MaxLag           time.Duration       // health fails if it is longer unknown that all of Shared is held; 0: 15 s
	// Join is called before the recovery, unless it is nil. It may bind Dir to a cluster and put
	// another node's snapshot there, and reports how far it is. Its error ends Run.
	Join func(ctx context.Context, progress func(done, total uint64)) error
}

// Engine follows one ledger and answers questions about it. Its methods may be called
// from any goroutine, also before and after Run.
type Engine struct {
	*reader.Reader // the queries, but for Account

	config  Config
	info    atomic.Pointer[ledger.SourceInfo]   // of the source or, in a cluster, of the ledger
	data    atomic.Pointer[ledger.DataPrograms] // the programs whose accounts are held with their data; nil: none
	shards  []*shard.Shard
	stored  *txstore.Store       // the transactions of blocks
	seq     *sequencer.Sequencer // belongs to the recovery, and then to the writer; any goroutine reads its counters
	board   *published.Board
	history *published.History
	writer  *ingest.Writer
	fill    *fill.Filler                   // nil: nothing is fetched
	log     atomic.Pointer[wal.Log]        // nil until it is replayed
	store   atomic.Pointer[snapshot.Store] // nil until recovery begins
	started time.Time

	progress     progress
	recoveryTook atomic.Int64 // nanoseconds
	archiveFails atomic.Bool  // the disk takes no history at the moment
}

// retentionShare bounds the retained blocks to one part in so many of the memory limit, whatever Retention says.
const retentionShare = 8

// New returns an engine that does nothing yet.
func New(c Config) *Engine {
	c.Shards = cmp.Or(max(c.Shards, 0), runtime.GOMAXPROCS(0))
	c.Retention.Slots = cmp.Or(c.Retention.Slots, 9000)
	c.Retention.Bytes = cmp.Or(c.Retention.Bytes, 2<<30)
	if c.MemoryLimit > 0 {
		c.Retention.Bytes = int(min(int64(c.Retention.Bytes), c.MemoryLimit/retentionShare))
	}
	c.HistoryBlocks = cmp.Or(c.HistoryBlocks, archivedBlocks)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	e := &Engine{
		config: c, board: published.NewBoard(c.OnPublish), stored: txstore.New(), started: time.Now(),
	}
	for i := range c.Shards {
		s := shard.New(i, c.Shards)
		if c.IndexMints {
			s.IndexMints()
		}
		e.shards = append(e.shards, s)
	}
	c.Retention.Kept = e.archivedBelow
	e.history = published.NewHistory(e.board, c.Dir)
	e.Reader = reader.New(reader.Config{
		Board: e.board, Shards: e.shards, Stored: e.stored, Deadline: queryDeadline,
	})
	if c.Fetcher != nil {
		e.fill = fill.New(fill.Config{
			Fetcher: c.Fetcher, Logger: c.Logger, Held: e.Reader.Account, Lacks: e.lacks, Board: e.board,
			Frozen: func() bool { return e.writer.Stopped() != "" }, Deadline: queryDeadline,
			Full:     func() bool { return c.FetchUpTo > 0 && e.accounts() >= c.FetchUpTo },
			MayFetch: func() bool { return c.MayFetch == nil || c.MayFetch() }, MintsOnly: c.MintsOnly,
		})
	}
	var info ledger.SourceInfo
	if c.Source != nil {
		info = c.Source.Info()
	}
	e.seq = sequencer.New(sequencer.Config{
		Shards: e.shards, Stored: e.stored, Retention: c.Retention, MemoryLimit: c.MemoryLimit, FoldAfter: foldAfter,
		Info: info, Filler: e.fill, Logger: c.Logger,
	})
	e.writer = ingest.New(ingest.Config{
		Source: c.Source, Shared: c.Shared, Dir: c.Dir, Shards: e.shards, Filler: e.fill,
		Board: e.board, History: e.history, Logger: c.Logger, ResumePoint: e.resumePoint, OnSnapshot: c.OnSnapshot,
		Sync: c.Sync, SnapshotInterval: c.SnapshotInterval, MinFreeBytes: c.MinFreeBytes, MaxLag: c.MaxLag,
	})
	e.learnDir(info)
	if c.Join != nil {
		e.progress.begin(joining, 0)
	}
	return e
}

// learnDir takes over what the data directory says of the ledger.
func (e *Engine) learnDir(info ledger.SourceInfo) {
	d := e.config.Dir
	e.data.Store(d.Data())
	e.seq.Bind(d.CheckRoot, d.Statuses(), d.SkipsVotes(), d.Data())
	if e.config.Source == nil || d.Imported() != nil && !info.GapsAllowed {
		info.Complete = d.ShowsAll()
	}
	if id, f := d.Cluster(); id != "" {
		info.Identity, info.Complete, info.Live = f.Source, f.Complete, f.Live
	}
	filter := d.Filter()
	for _, s := range e.shards {
		s.SetFilter(filter)
	}
	e.Cover(reader.Coverage{ShowsAll: info.Complete, Complete: info.Complete && filter == nil, Filter: filter, SkipVotes: d.SkipsVotes()})
	e.info.Store(&info)
}

// Run recovers what the data directory holds, follows the source until ctx ends, and then
// returns nil, or until something fails that an operator has to look at. At the end of a finite
// source it goes on serving.
func (e *Engine) Run(ctx context.Context) error {
	defer func() { e.Archive().Close() }() // recovery opens it
	err := e.join(ctx)
	if err != nil || ctx.Err() != nil {
		return errors.Join(err, e.closeLog())
	}
	r := &recovery{node: e}
	err = r.run(ctx, func(ctx context.Context) error {
		r.found.Source = *e.info.Load()
		running, stop := context.WithCancel(ctx)
		var beside sync.WaitGroup
		beside.Go(func() { r.verify(running) })
		beside.Go(func() { e.archive(running) })
		defer beside.Wait()
		defer stop()
		return e.writer.Run(ctx, e.seq, r.found)
	})
	switch closeErr := e.closeLog(); {
	case closeErr == nil || err != nil || e.writer.Stopped() != "": // the failure of a log was reported when ingest stopped
	case errors.Is(closeErr, wal.ErrNoSpace):
		e.config.Logger.Warn("the log ends without a mark that it was closed: the disk is full", "error", closeErr)
	default:
		err = fmt.Errorf("cannot close the log: %w", closeErr)
	}
	return err
}

// closeLog closes the log, if it was replayed.
func (e *Engine) closeLog() error {
	if l := e.log.Load(); l != nil {
		return l.Close()
	}
	return nil
}

// join calls Config.Join, which may bind and fill the data directory, and then takes over what the directory says.
func (e *Engine) join(ctx context.Context) error {
	if e.config.Join == nil {
		return nil
	}
	if err := e.config.Join(ctx, e.progress.set); err != nil {
		return unlessEnded(ctx, fmt.Errorf("cannot join the cluster: %w", err))
	}
	if ctx.Err() == nil {
		e.learnDir(*e.info.Load())
	}
	return nil
}

// unlessEnded returns err, or nil if err only says that ctx ended.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// resumePoint returns where the source continues, nil if there is no finalized block yet. Only the goroutine that owns the
// sequencer calls it.
func (e *Engine) resumePoint() *ledger.ResumePoint {
	c := e.seq.Chain()
	n := c.Finalized
	if n == nil {
		return nil
	}
	version := n.Version
	return &ledger.ResumePoint{
		Slot: n.Slot(), Newest: c.Tip.Slot(), Blockhash: n.Block.Blockhash, Height: n.Block.Height,
		Visit: func(account func(*ledger.Account) bool, mint func(*ledger.MintWrite) bool) error {
			return e.visit(version, account, mint)
		},
	}
}

// Account returns a live account without its token facts, which Accounts and Tokens return. For a
// missing one it returns a *ledger.NotFoundError. With Config.Fetcher it first fetches an account that is not
// held, within the deadline of the query.
func (e *Engine) Account(q ledger.Query, key ledger.Pubkey) (ledger.Account, ledger.View, error) {
	a, v, err := e.Reader.Account(q, key)
	if e.fill == nil || e.config.MintsOnly || q.Head != nil || !e.writer.Writes() { // only the writer of a shared log records fetched accounts
		return a, v, err
	}
	return e.fill.Account(q, key, a, v, err)
}

// Want fetches what is not known of held accounts, as a query for them would, and does not wait. It does nothing on a node that
// holds no data.
func (e *Engine) Want(keys ...ledger.Pubkey) {
	if e.fill != nil && e.data.Load() != nil && !e.config.MintsOnly && e.writer.Writes() {
		e.fill.Want(keys...)
	}
}

// sysvarAge bounds how many slots the data of a sysvar may lag behind the finalized slot. The runtime changes it in every block, and
// a source that shows only what transactions write does not show that.
const sysvarAge = 32

// lacks reports whether fields of an account are unknown or, if the node holds its data, whether the data is unknown or is that of a
// sysvar and too old.
func (e *Engine) lacks(a *ledger.Account) bool {
	if a.Unknown() != 0 || !e.data.Load().Keep(&a.Owner) {
		return a.Unknown() != 0
	}
	h := e.Head()
	isOld := a.Owner == ledger.SysvarProgram && !e.info.Load().Stream && h != nil && a.Provenance.Slot()+sysvarAge < h.Tip(ledger.Finalized).Slot
	return isOld || a.Known&ledger.FieldData == 0
}

// Head returns the newest published head, nil before the first and after the node fenced itself off.
func (e *Engine) Head() *ledger.Head { return e.board.Head() }

// Oldest returns the oldest seq that Past can begin after, the greatest seq before there is one.
func (e *Engine) Oldest() ledger.Seq { return e.history.Oldest() }

// Past returns a function that reads publications back from the log; see published.History.
func (e *Engine) Past(after ledger.Seq) func(ctx context.Context, visit func(*ledger.Publication) bool) error {
	return e.history.Past(after)
}

// Backup returns the data directory as it stands, while the node goes on; see datadir.Backup. The caller closes it.
func (e *Engine) Backup() (*datadir.Backup, error) {
	l := e.log.Load()
	if p := e.progress.Load(); p.Phase != "" || l == nil {
		return nil, errors.New("there is nothing to back up before the node has recovered")
	}
	return e.config.Dir.Backup(l)
}

// FenceReason returns why the node answers nothing any more, "" while it answers: what it holds differs from what the log says.
func (e *Engine) FenceReason() string { return e.board.FenceReason() }

// Fenced returns a channel that is closed when the node fences itself off.
func (e *Engine) Fenced() <-chan struct{} { return e.board.Fenced() }
