package fill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"ledgerd/engine/ledger"
	"ledgerd/engine/published"
)

const (
	// MaxPending bounds the pending keys, at some 100 bytes each; they take about forty requests to
	// the node. Past it queries for further accounts get ledger.ErrFetchBusy.
	MaxPending = 4096
	// MaxFetches bounds the concurrent requests to the node. A request has up to ledger.MaxFetchKeys of the waiting
	// keys, so more requests would only be smaller.
	MaxFetches = 4
	// fetchTimeout bounds one request to the node.
	fetchTimeout = 5 * time.Second
	// GiveUpAfter bounds the work for one batch of keys, from the first request to the
	// publication of the answer.
	GiveUpAfter = 10 * time.Second
	// PauseAfter is the least time without requests after one failed. The node may ask for more.
	PauseAfter = time.Second
	// AgainAfter is the time before the first retry when the node answered as of a slot that is too old. It doubles with each retry.
	AgainAfter = 400 * time.Millisecond
)

// Config is what a Filler needs. All fields must be set.
type Config struct {
	Fetcher ledger.Fetcher
	Logger  *slog.Logger
	// Held answers a query for an account without fetching.
	Held func(ledger.Query, ledger.Pubkey) (ledger.Account, ledger.View, error)
	// Lacks reports whether something of a held account is unknown, or too old, that the node can tell.
	Lacks func(*ledger.Account) bool
	// Board has the newest visible head.
	Board *published.Board
	// Frozen reports whether ingest stopped for good: then no answer can be applied.
	Frozen func() bool
	// Full reports whether the node holds as many accounts as it may: then only those that are held in part are completed.
	Full func() bool
	// MayFetch reports whether there is memory for what is fetched.
	MayFetch func() bool
	// Deadline bounds a query that has no deadline of its own.
	Deadline time.Duration
	// MintsOnly: no query fetches.
	MintsOnly bool
}

// Filler fetches accounts that queries ask for and that are not held. A nil *Filler fetches nothing: the methods for the
// sequencer do nothing, and Answers and Stats are empty.
type Filler struct {
	Config
	answers chan *Answer
	fetches *semaphore.Weighted // bounds the running requests
	wake    chan struct{}       // holds a token when a key was queued, or wanted

	mu        sync.Mutex
	stats     Stats // without On and Waiting
	pending   map[ledger.Pubkey]*pending
	queue     []ledger.Pubkey // pending keys that no goroutine serves yet
	wanted    map[ledger.Pubkey]struct{}
	recent    recentWrites
	negative  map[ledger.Pubkey]absence
	mints     map[ledger.Pubkey]bool // that were fetched
	rollbacks uint64
	paused    time.Time            // no requests until then
	pausedBy  ledger.UpstreamError // why
	down      bool                 // the newest request failed
	stopped   bool
}

// pending is an account that queries wait for, or a mint that the source shows in part.
type pending struct {
	partial   bool          // it is held, but something of it is unknown, or too old
	isMint    bool          // it is fetched until that succeeds
	again     bool          // it is wanted once more after this
	atLeast   ledger.Slot   // the least slot of a useful answer
	notBefore time.Time     // it is not fetched before
	done      chan struct{} // closed when err is set
	err       error         // nil: the state or the negative cache has the result
}

// New returns a filler that does nothing until Run.
func New(c Config) *Filler {
	return &Filler{
		Config: c, pending: make(map[ledger.Pubkey]*pending), negative: make(map[ledger.Pubkey]absence), mints: make(map[ledger.Pubkey]bool),
		answers: make(chan *Answer), fetches: semaphore.NewWeighted(MaxFetches), wake: make(chan struct{}, 1),
		wanted: make(map[ledger.Pubkey]struct{}),
	}
}

// Run fetches pending accounts until ctx ends. It returns when every goroutine that it started has ended.
func (f *Filler) Run(ctx context.Context) {
	var serving sync.WaitGroup
	defer serving.Wait()
	defer f.stop()
	for f.fetches.Acquire(ctx, 1) == nil { // before nextKeys, so that keys collect in the queue while all requests are in flight
		keys := f.nextKeys(ctx)
		if len(keys) == 0 {
			return
		}
		serving.Go(func() { f.serve(ctx, keys) })
	}
}

// nextKeys waits for keys to fetch. It returns none when ctx ends.
func (f *Filler) nextKeys(ctx context.Context) []ledger.Pubkey {
	for {
		changed := f.Board.Next() // before the head is read, so that none is missed
		f.lookAtWanted(ctx)
		if keys := f.take(f.finalized()); len(keys) > 0 {
			return keys
		}
		select {
		case <-f.wake:
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// finalized returns the newest visible finalized slot.
func (f *Filler) finalized() ledger.Slot {
	if h := f.Board.Head(); h != nil {
		return h.Tip(ledger.Finalized).Slot
	}
	return 0
}

// take dequeues the oldest keys for which an answer at the finalized slot is new enough, at most ledger.MaxFetchKeys.
func (f *Filler) take(finalized ledger.Slot) (keys []ledger.Pubkey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Frozen() {
		return nil
	}
	f.queue = slices.DeleteFunc(f.queue, func(k ledger.Pubkey) bool {
		p := f.pending[k]
		due := p.atLeast <= finalized && !time.Now().Before(p.notBefore) && len(keys) < ledger.MaxFetchKeys
		if due {
			keys = append(keys, k)
		}
		return due
	})
	return keys
}

// await makes a key pending, or returns the pending entry that exists already.
func (f *Filler) await(key ledger.Pubkey, partial bool, atLeast ledger.Slot) (*pending, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.pending[key]; p != nil {
		if !partial && p.partial { // a rollback undid the block that showed a part of the account
			p = &pending{done: p.done}
			f.pending[key] = p
		}
		return p, nil // raising atLeast would starve an account that every block writes
	}
	limit := MaxPending
	if partial {
		limit /= 2 // partial accounts may wait long for finality, and must not block accounts that are not held
	}
	switch {
	case f.stopped:
		return nil, ledger.ErrUnavailable
	case f.Frozen():
		return nil, errFrozen
	case time.Now().Before(f.paused):
		err := f.pausedBy
		err.RetryAfter = time.Until(f.paused)
		return nil, &err
	case !partial && f.Full():
		return nil, ledger.ErrFetchFull
	case !f.MayFetch():
		return nil, errShort
	case len(f.pending) >= limit:
		return nil, ledger.ErrFetchBusy
	}
	p := &pending{partial: partial, atLeast: atLeast}
	f.addLocked(key, p)
	return p, nil
}

// addLocked makes a key pending.
func (f *Filler) addLocked(key ledger.Pubkey, p *pending) {
	p.done = make(chan struct{})
	f.pending[key] = p
	f.queue = append(f.queue, key)
	f.wakeUp()
}

// wakeUp has Run look at the queue.
func (f *Filler) wakeUp() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// endLocked removes pending keys and wakes their queries with err. A mint that could not be fetched waits instead.
func (f *Filler) endLocked(err error, keys ...ledger.Pubkey) {
	for _, k := range keys {
		p := f.pending[k]
		if p != nil && p.isMint && err != nil && !f.stopped {
			f.retryLocked(k, time.Until(f.paused))
		} else if p != nil {
			p.err = err
			close(p.done)
			delete(f.pending, k)
			if p.again {
				f.wantLocked(k)
			}
		}
	}
}

// update calls change with the lock held. A nil Filler has nothing to change.
func (f *Filler) update(change func()) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// record counts a request for keys. If it failed, record ends these keys and all queued keys with the error, and pauses
// requests.
func (f *Filler) record(keys []ledger.Pubkey, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.Fetches++
	f.stats.Keys += uint64(len(keys))
	wasDown := f.down
	if f.down = err != nil; !f.down {
		if wasDown {
			f.Logger.Info("accounts are fetched from the node again")
		}
		return
	}
	f.stats.Failures++
	why := ledger.UpstreamError{Err: err}
	if upstream, ok := errors.AsType[*ledger.UpstreamError](err); ok {
		why = *upstream
	}
	why.RetryAfter = min(max(PauseAfter, why.RetryAfter), ledger.MaxRetryAfter)
	if !wasDown {
		f.Logger.Warn("accounts cannot be fetched from the node", "error", &why)
	}
	f.paused, f.pausedBy = time.Now().Add(why.RetryAfter), why
	keys, f.queue = append(keys, f.queue...), nil
	f.endLocked(&why, keys...)
}

// stop ends all pending keys, since the engine stops.
func (f *Filler) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped, f.queue = true, nil
	f.endLocked(fmt.Errorf("the node is stopping: %w", ledger.ErrUnavailable), slices.Collect(maps.Keys(f.pending))...)
}

// Stats are the figures of fetching; all are zero for a nil Filler.
type Stats struct {
	On bool
	// Queries for accounts that were not held, by result.
	Found, Missing, Unavailable uint64

	Fetches, Failures uint64 // requests to the node that ended, and those that failed
	Keys              uint64 // keys of all requests
	Stale             uint64 // of Keys: answered as of a slot that was too old
	Waiting           int    // pending keys
}

// Stats returns the current figures.
func (f *Filler) Stats() (s Stats) {
	f.update(func() {
		s = f.stats
		s.On, s.Waiting = !f.MintsOnly, len(f.pending)
	})
	return s
}
