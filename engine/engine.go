package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ledgerd/engine/ledger"
	"ledgerd/shard"
)

const (
	// eventLane bounds the events that wait for the sequencer; a source waits for room.
	// It is also how many events may share one commit.
	eventLane = 64
	// stallAfter is how long a live source may show nothing before health says so.
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

// Config is what an engine needs. Source may be nil: then it serves what it holds.
type Config struct {
	Source    Source
	Log       Log                       // nil: NullLog
	Dir       *Dir                      // nil: nothing is kept, as in tests
	Shards    int                       // 0: one a core
	Retention Retention                 // 0: 9000 slots, 2 GiB
	OnPublish func(*ledger.Publication) // called in order from one goroutine; must not block
	Logger    *slog.Logger              // nil: slog.Default
}

// Engine follows one ledger and answers questions about it. Its methods may be called
// from any goroutine, also before and after Run.
type Engine struct {
	config  Config
	info    ledger.SourceInfo
	shards  []*shard.Shard
	logger  *slog.Logger
	tally   tally
	seq     *sequencer // touched by the goroutine of sequence alone, but for its counters
	started time.Time

	head     atomic.Pointer[ledger.Head]
	ready    atomic.Bool
	frozen   atomic.Pointer[string] // why ingest stopped, nil while it goes on
	paused   atomic.Bool            // ingest waits for finality
	lastSeen atomic.Int64           // when the source showed something last, since started
	backlog  backlog                // touched by the goroutine of sequence alone

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each publication
}

// New returns an engine that does nothing yet.
func New(c Config) *Engine {
	if c.Shards <= 0 {
		c.Shards = runtime.GOMAXPROCS(0)
	}
	if c.Log == nil {
		c.Log = NullLog{}
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
	e := &Engine{config: c, logger: c.Logger, started: time.Now(), changed: make(chan struct{})}
	if c.Source != nil {
		e.info = c.Source.Info()
	}
	for i := range c.Shards {
		e.shards = append(e.shards, shard.New(i, c.Shards))
	}
	e.seq = &sequencer{
		committer: committer{shards: e.shards, store: c.Log, retention: c.Retention, publish: e.publish},
		chain:     newChain(), info: e.info, log: c.Logger, tally: &e.tally,
		bindRoot: func(ledger.Hash) error { return nil },
	}
	if c.Dir != nil {
		e.seq.bindRoot = c.Dir.BindRoot
	}
	return e
}

// Run follows the source until ctx ends, and then returns nil, or until something fails
// that a person has to look at. At the end of a finite source it goes on serving.
func (e *Engine) Run(ctx context.Context) error {
	// The shards outlive the sequencer, which needs them for its last commit.
	background, stopShards := context.WithCancel(context.Background())
	defer stopShards()
	shards, broken := errgroup.WithContext(background)
	for _, s := range e.shards {
		shards.Go(func() error { return s.Run(broken) })
	}
	flow, flowCtx := errgroup.WithContext(ctx)
	events := make(chan ledger.Event, eventLane)
	flow.Go(func() error { return e.follow(flowCtx, events) })
	flow.Go(func() error { return e.sequence(flowCtx, events) })
	flow.Go(func() error {
		select {
		case <-broken.Done():
			return errBroken
		case <-flowCtx.Done():
			return nil
		}
	})
	err := flow.Wait()
	stopShards()
	if shardErr := shards.Wait(); shardErr != nil {
		err = shardErr
	}
	if closeErr := e.config.Log.Close(); closeErr != nil && err == nil {
		err = fmt.Errorf("cannot close the log: %w", closeErr)
	}
	return err
}

// errBroken ends the flow; the shard's own error says why.
var errBroken = errors.New("a shard broke")

// follow runs the source and closes events at the end of its input.
func (e *Engine) follow(ctx context.Context, events chan<- ledger.Event) error {
	defer close(events)
	if e.config.Source == nil {
		return nil
	}
	emit := func(ctx context.Context, ev ledger.Event) error {
		e.lastSeen.Store(int64(time.Since(e.started)))
		select {
		case events <- ev:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := e.config.Source.Run(ctx, nil, emit); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("source %s: %w", e.info.Name, err)
	}
	return nil
}
