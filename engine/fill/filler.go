package fill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"ledgerd/engine/ledger"
)

const (
	// MaxPending bounds the keys that are waited for: some 100 bytes each, and forty answers of
	// the node. Past it questions about accounts that are not held are answered with 503.
	MaxPending = 4096
	// MaxFetches is how many questions the node is asked at once. Each is of many keys where
	// many wait, so more would only make them smaller.
	MaxFetches = 4
	// fetchTimeout bounds one question to the node.
	fetchTimeout = 5 * time.Second
	// GiveUpAfter bounds the work for one batch of keys, from the first question to the node to the
	// publication of the answer.
	GiveUpAfter = 10 * time.Second
	// PauseAfter is for how long nothing is asked of a node that is down, unless it says.
	PauseAfter = time.Second
	// AgainAfter is when a node is asked again that answered as of a slot too old.
	AgainAfter = 400 * time.Millisecond
)

// Config says whom to ask, and how to see what is held. All fields are needed.
type Config struct {
	Fetcher ledger.Fetcher
	Logger  *slog.Logger
	// Held answers a question about an account from what is held.
	Held func(ledger.Query, ledger.Pubkey) (ledger.Account, ledger.View, error)
	// Head returns the newest visible head, nil before the first.
	Head func() *ledger.Head
	// NextPublication returns a channel that is closed when the next head is visible.
	NextPublication func() <-chan struct{}
	// Frozen reports whether ingest stopped for good: then nothing can be learned.
	Frozen func() bool
	// Deadline is how long one question may take.
	Deadline time.Duration
}

// Filler fetches accounts that are asked for and not held. A nil *Filler fetches nothing: what the sequencer
// calls does nothing, and Answers and Stats are empty.
type Filler struct {
	Config
	answers chan *Answer
	fetches chan struct{} // holds a token for each question that the node is being asked
	wake    chan struct{} // holds a token when a key was queued
	stats   counters

	mu        sync.Mutex
	pending   map[ledger.Pubkey]*pending
	queue     []ledger.Pubkey // of pending: those that no goroutine serves yet
	touched   touched
	negative  negativeCache
	rollbacks uint64
	paused    time.Time            // until then the node is not asked
	pausedBy  ledger.UpstreamError // why
	down      bool                 // the newest fetch failed
	stopped   bool
}

// pending is an account that somebody asked for.
type pending struct {
	partial bool          // it is held, but some fields are unknown
	atLeast ledger.Slot   // an answer as of an older slot is of no use
	done    chan struct{} // closed when err is set
	err     error         // nil: the state or the negative cache tells now
}

// New returns a filler that does nothing until Run.
func New(c Config) *Filler {
	return &Filler{
		Config: c, pending: make(map[ledger.Pubkey]*pending),
		answers: make(chan *Answer), fetches: make(chan struct{}, MaxFetches), wake: make(chan struct{}, 1),
	}
}

// Run fetches what is asked for until ctx ends. It returns when every goroutine that it started has ended.
func (f *Filler) Run(ctx context.Context) {
	var serving sync.WaitGroup
	defer serving.Wait()
	defer f.stop()
	for {
		select { // first, so that keys gather while the node is busy
		case f.fetches <- struct{}{}:
		case <-ctx.Done():
			return
		}
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
		changed := f.NextPublication() // before the head is read, so that none is missed
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
	if h := f.Head(); h != nil {
		return h.Tip(ledger.Finalized).Slot
	}
	return 0
}

// take takes the oldest queued keys of which a finalized answer can be new enough.
func (f *Filler) take(finalized ledger.Slot) (keys []ledger.Pubkey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var left []ledger.Pubkey
	for _, k := range f.queue {
		if f.pending[k].atLeast > finalized || len(keys) == ledger.MaxFetchKeys {
			left = append(left, k)
		} else {
			keys = append(keys, k)
		}
	}
	f.queue = left
	return keys
}

// await makes a key pending, or returns what is pending already.
func (f *Filler) await(key ledger.Pubkey, partial bool, atLeast ledger.Slot) (*pending, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.pending[key]; p != nil {
		if !partial { // the block that showed a part of it was undone
			p.partial, p.atLeast = false, 0
		}
		return p, nil // atLeast is not raised: else an account that each block writes would never be complete
	}
	room := MaxPending
	if partial {
		room /= 2 // they may wait for finality, and what is not held must not wait for them
	}
	switch {
	case f.stopped:
		return nil, ledger.ErrUnavailable
	case time.Now().Before(f.paused):
		err := f.pausedBy
		err.RetryAfter = time.Until(f.paused)
		return nil, &err
	case len(f.pending) >= room:
		return nil, ledger.ErrFetchBusy
	}
	p := &pending{partial: partial, atLeast: atLeast, done: make(chan struct{})}
	f.pending[key] = p
	f.queue = append(f.queue, key)
	select {
	case f.wake <- struct{}{}:
	default:
	}
	return p, nil
}

func (f *Filler) endLocked(key ledger.Pubkey, err error) {
	if p := f.pending[key]; p != nil {
		p.err = err
		close(p.done)
		delete(f.pending, key)
	}
}

// end ends the waiting for keys, with an error or because the state tells now.
func (f *Filler) end(keys []ledger.Pubkey, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range keys {
		f.endLocked(k, err)
	}
}

// fail ends the waiting for keys that the node could not be asked for, and for all that are queued. The node is left alone for a while.
func (f *Filler) fail(keys []ledger.Pubkey, err error) {
	f.stats.failures.Add(1)
	why := ledger.UpstreamError{Err: err}
	var upstream *ledger.UpstreamError
	if errors.As(err, &upstream) {
		why = *upstream
	}
	why.RetryAfter = min(max(PauseAfter, why.RetryAfter), ledger.MaxRetryAfter)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.down {
		f.Logger.Warn("accounts cannot be fetched from the node", "error", &why)
	}
	f.down, f.paused, f.pausedBy = true, time.Now().Add(why.RetryAfter), why
	queued := f.queue
	f.queue = nil
	for _, k := range append(keys, queued...) {
		f.endLocked(k, &why)
	}
}

// back notes that the node answered.
func (f *Filler) back() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		f.down = false
		f.Logger.Info("accounts are fetched from the node again")
	}
}

// stop ends all waiting: the engine stops.
func (f *Filler) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped, f.queue = true, nil
	for k := range f.pending {
		f.endLocked(k, fmt.Errorf("the node is stopping: %w", ledger.ErrUnavailable))
	}
}

// Stats are the figures of accounts that were asked for and not held. Zero where nothing is fetched.
type Stats struct {
	On bool
	// Questions about accounts that were not held, by what they were answered with.
	Found, Missing, Unavailable uint64

	Fetches, Failures uint64 // questions to the node, and those it did not answer
	Keys              uint64 // that it was asked for
	Stale             uint64 // of Keys: answered as of a slot too old, and asked for again
	Waiting           int    // keys that are waited for now
}

type counters struct {
	found, missing, unavailable    atomic.Uint64
	fetches, failures, keys, stale atomic.Uint64
}

// Stats returns the figures as they stand now.
func (f *Filler) Stats() Stats {
	if f == nil {
		return Stats{}
	}
	f.mu.Lock()
	waiting := len(f.pending)
	f.mu.Unlock()
	s := &f.stats
	return Stats{
		On: true, Found: s.found.Load(), Missing: s.missing.Load(), Unavailable: s.unavailable.Load(),
		Fetches: s.fetches.Load(), Failures: s.failures.Load(), Keys: s.keys.Load(), Stale: s.stale.Load(), Waiting: waiting,
	}
}
