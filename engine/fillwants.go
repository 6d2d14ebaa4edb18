package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"ledgerd/engine/ledger"
)

const (
	// maxWants bounds the keys that are waited for: some 100 bytes each, and forty answers of
	// the node. Past it questions about accounts that are not held are answered with 503.
	maxWants = 4096
	// maxFetches is how many questions the node is asked at once. Each is of many keys where
	// many wait, so more would only make them smaller.
	maxFetches = 4
	// fetchTimeout bounds one question to the node. Who asked first has given up by then; who
	// asks again finds what came.
	fetchTimeout = 5 * time.Second
	// holdFor is how long an answer may wait for the chain here to get there.
	holdFor = 10 * time.Second
	// pauseAfter is for how long nothing is asked of a node that is down, unless it says.
	pauseAfter = time.Second
	// againAfter is when a node is asked again that answered as of a slot too old.
	againAfter = 400 * time.Millisecond
	// offerAgainAfter is when the sequencer is offered an answer again that was too early for it.
	offerAgainAfter = 50 * time.Millisecond
)

// want is an account that somebody asked for, until there is nothing more to learn of it.
type want struct {
	// atLeast is the slot before which an answer of the node is of no use.
	atLeast ledger.Slot
	held    bool // something is held of it: its absence has to be learned, too
	doubted bool // what was learned of it is to be confirmed, whether somebody waits or not

	since   time.Time
	learned ledger.Version // the record that taught it, 0 while none did
	done    chan struct{}  // closed when err is set
	err     error          // nil: what there is to know is visible, or remembered as absent
}

// filler fetches accounts that are asked for and not held.
type filler struct {
	fetcher ledger.Fetcher
	logger  *slog.Logger
	offers  chan *fetched // to the sequencer
	results chan *fetched // of fetches; room for all, so that none waits
	wake    chan struct{} // something is wanted, or came back

	stats     fillStats
	unsettled atomic.Int64  // keys that the sequencer may have to doubt
	undone    atomic.Uint64 // how often the chain was undone

	mu       sync.Mutex
	wants    map[ledger.Pubkey]*want
	queue    []ledger.Pubkey // of wants: those to fetch next
	later    []lateKey       // of wants: those to fetch a while later, by time
	learning []learning      // learned and not visible yet, by version
	visible  ledger.Version  // the newest
	returned []*fetched      // by the sequencer: too early
	absent   absences
	paused   time.Time            // until then the node is not asked
	pausedBy ledger.UpstreamError // why
	down     bool                 // the newest fetch failed
	stopped  bool
}

// lateKey is a key that is to be fetched again.
type lateKey struct {
	key ledger.Pubkey
	at  time.Time
}

// learning are keys that a record taught.
type learning struct {
	version ledger.Version
	keys    []ledger.Pubkey
}

// fillStats count what filling did.
type fillStats struct {
	found, missing, unavailable             atomic.Uint64
	fetches, failures, keys, stale, doubted atomic.Uint64
}

func newFiller(fetcher ledger.Fetcher, logger *slog.Logger) *filler {
	return &filler{
		fetcher: fetcher, logger: logger, wants: make(map[ledger.Pubkey]*want),
		offers: make(chan *fetched), results: make(chan *fetched, maxFetches), wake: make(chan struct{}, 1),
	}
}

// learnable returns the channel on which the sequencer is offered what was fetched, nil for none.
func (f *filler) learnable() <-chan *fetched {
	if f == nil {
		return nil
	}
	return f.offers
}

// errLookAgain says that something became visible since who asks looked.
var errLookAgain = errors.New("the state is newer than what was looked at")

// want returns the want for a key, which is the one given if there is none yet. The key was found
// to be wanting at a version.
func (f *filler) want(key ledger.Pubkey, at ledger.Version, w want) (*want, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if old := f.wants[key]; old != nil {
		old.atLeast, old.held = max(old.atLeast, w.atLeast), old.held || w.held
		return old, nil
	}
	switch {
	case f.stopped:
		return nil, ledger.ErrUnavailable
	case at < f.visible: // it may have been wanted meanwhile, and be there now
		return nil, errLookAgain
	case time.Now().Before(f.paused):
		err := f.pausedBy
		err.RetryAfter = time.Until(f.paused)
		return nil, &err
	case len(f.wants) >= maxWants || f.unsettled.Load() >= maxUnsettled:
		return nil, ledger.ErrFetchBusy
	}
	return f.addLocked(key, w), nil
}

func (f *filler) addLocked(key ledger.Pubkey, w want) *want {
	w.since, w.done = time.Now(), make(chan struct{})
	f.wants[key] = &w
	f.queue = append(f.queue, key)
	f.wakeUp()
	return &w
}

func (f *filler) wakeUp() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// endLocked ends a want. What is in doubt stays wanted until that is over.
func (f *filler) endLocked(key ledger.Pubkey, err error) {
	w := f.wants[key]
	if w == nil {
		return
	}
	w.err = err
	close(w.done)
	delete(f.wants, key)
	if w.doubted && err != nil && !f.stopped {
		again := &want{atLeast: w.atLeast, held: true, doubted: true, since: time.Now(), done: make(chan struct{})}
		f.wants[key] = again
		f.later = append(f.later, lateKey{key, again.since.Add(againAfter)})
		f.wakeUp()
	}
}

// end ends wants with an error.
func (f *filler) end(keys []ledger.Pubkey, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range keys {
		f.endLocked(k, err)
	}
}

// fail ends wants that the node could not be asked for, and has it left alone for a while.
func (f *filler) fail(keys []ledger.Pubkey, err error) {
	f.stats.failures.Add(1)
	why := ledger.UpstreamError{Err: err}
	var upstream *ledger.UpstreamError
	if errors.As(err, &upstream) {
		why = *upstream
	}
	why.RetryAfter = min(max(pauseAfter, why.RetryAfter), ledger.MaxRetryAfter)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.down {
		f.logger.Warn("accounts cannot be fetched from the node", "error", &why)
	}
	f.down, f.paused, f.pausedBy = true, time.Now().Add(why.RetryAfter), why
	waiting := f.queue
	f.queue = nil
	for _, k := range append(keys, waiting...) {
		f.endLocked(k, &why)
	}
}

// back notes that the node answered.
func (f *filler) back() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		f.down = false
		f.logger.Info("accounts are fetched from the node again")
	}
}

// postpone has wants fetched again: the node answered as of a slot too old.
func (f *filler) postpone(keys []ledger.Pubkey) {
	f.stats.stale.Add(uint64(len(keys)))
	f.mu.Lock()
	defer f.mu.Unlock()
	at := time.Now().Add(againAfter)
	for _, k := range keys {
		if f.wants[k] != nil {
			f.later = append(f.later, lateKey{k, at})
		}
	}
	f.wakeUp()
}

// take takes keys to fetch next, none while the node is left alone. Those that waited too long
// end.
func (f *filler) take(now time.Time) (keys []ledger.Pubkey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.later) > 0 && !now.Before(f.later[0].at) {
		f.queue = append(f.queue, f.later[0].key)
		f.later = f.later[1:]
	}
	if now.Before(f.paused) {
		return nil
	}
	for len(f.queue) > 0 && len(keys) < ledger.MaxFetchKeys {
		k := f.queue[0]
		f.queue = f.queue[1:]
		switch w := f.wants[k]; {
		case w == nil:
		case now.Sub(w.since) > holdFor && !w.doubted:
			f.endLocked(k, ledger.ErrFetching)
		default:
			keys = append(keys, k)
		}
	}
	return keys
}

// nextWork returns how long there is nothing to fetch, as far as is known now.
func (f *filler) nextWork(now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	wait := time.Hour
	if len(f.later) > 0 {
		wait = f.later[0].at.Sub(now)
	}
	if len(f.queue) > 0 {
		wait = min(wait, f.paused.Sub(now))
	} else if len(f.later) > 0 {
		wait = max(wait, f.paused.Sub(now))
	}
	return max(wait, 0)
}

// remembered returns what is known of a key that is not held.
func (f *filler) remembered(key ledger.Pubkey) (absentKey, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.absent.find(key, time.Now())
}

// unwanted remembers a key that was learned and yet is not held: a filter keeps it out.
func (f *filler) unwanted(key ledger.Pubkey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.absent.add(key, absentKey{unwanted: true}, time.Now())
}

// stop ends all wants: the engine does.
func (f *filler) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
	for k := range f.wants {
		f.endLocked(k, fmt.Errorf("the node is stopping: %w", ledger.ErrUnavailable))
	}
}
