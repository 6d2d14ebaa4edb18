package geyser

import (
	"context"
	"errors"
	"sync"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/upstream"
)

const (
	// wantedMints bounds the mints to ask for; those beyond are asked for when they are written again.
	wantedMints = 10_000
	// knownMints bounds those that are remembered as asked for.
	knownMints = 1 << 17
	// mintTimeout bounds one question.
	mintTimeout = 10 * time.Second
)

// mints asks for the mints of which the stream shows the header alone, each until it is answered: whether their
// amounts are scaled stands behind it.
type mints struct {
	config *Config
	known  map[ledger.Pubkey]struct{} // asked for, or to be asked for; touched by Run's goroutine alone
	told   bool                       // that nobody can be asked; likewise

	mu     sync.Mutex
	wanted []wantedMint
	wake   chan struct{}          // holds a token when there may be some
	found  chan *ledger.BaseState // for Run to emit
}

// wantedMint is a mint to ask for, as the block of a slot left it.
type wantedMint struct {
	key  ledger.Pubkey
	slot ledger.Slot
}

func newMints(c *Config) *mints {
	return &mints{config: c, known: make(map[ledger.Pubkey]struct{}), wake: make(chan struct{}, 1), found: make(chan *ledger.BaseState)}
}

// mintNews is what a block says of mints that are shown in part.
type mintNews struct {
	slot   ledger.Slot
	cut    []ledger.Pubkey
	closed []ledger.Pubkey // all accounts: one of them may have been such a mint
}

// look returns what a block says of such mints.
func (m *mints) look(b *ledger.Block) mintNews {
	news := mintNews{slot: b.Slot}
	for i := range b.Accounts {
		switch w := &b.Accounts[i]; {
		case w.Lamports == 0:
			news.closed = append(news.closed, w.Pubkey)
		case w.Mint != nil && !w.Mint.Scaled.Known:
			news.cut = append(news.cut, w.Pubkey)
		}
	}
	return news
}

// confirmed takes what a block says that will not be undone. So it is known where the mints are asked for
// at confirmed level, and what is answered stays.
func (m *mints) confirmed(news mintNews) {
	if m.config.Fetcher == nil {
		if len(news.cut) > 0 {
			m.tell()
		}
		return
	}
	for _, key := range news.closed {
		delete(m.known, key) // what is opened there later may be another mint
	}
	woken := false
	for _, key := range news.cut {
		woken = m.want(wantedMint{key, news.slot}) || woken
	}
	if woken {
		token(m.wake)
	}
}

func (m *mints) tell() {
	if !m.told {
		m.told = true
		m.config.Logger.Warn("whether mints with extensions scale their amounts stays unknown: the stream is asked for headers and nobody for the rest (see rpc= and data=full)")
	}
}

// want adds a mint to those to ask for, false if it was asked for before or there are too many.
func (m *mints) want(w wantedMint) bool {
	if _, ok := m.known[w.key]; ok {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.wanted) >= wantedMints {
		return false
	}
	if len(m.known) >= knownMints {
		clear(m.known)
	}
	m.known[w.key] = struct{}{}
	m.wanted = append(m.wanted, w)
	return true
}

// start begins to ask; the function returned ends that.
func (m *mints) start(ctx context.Context) (stop func()) {
	if m.config.Fetcher == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { m.ask(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// ask asks for mints until ctx ends. Those without an answer go behind the others and are asked for again, slower
// each time that nothing is answered.
func (m *mints) ask(ctx context.Context) {
	backoff := upstream.Backoff{Min: m.config.BackoffMin, Max: m.config.BackoffMax, Random: m.config.Random}
	for {
		wanted := m.next()
		if len(wanted) == 0 {
			select {
			case <-m.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		left, wait := m.askFor(ctx, wanted)
		m.putBack(left)
		if len(left) < len(wanted) {
			backoff.Reset()
		}
		if len(left) > 0 && backoff.Wait(ctx, wait) != nil {
			return
		}
	}
}

// askFor asks for mints and hands the answer to Run. It returns those that were not answered, and how long the node asks
// to wait: it may be down, or behind the blocks that showed them.
func (m *mints) askFor(ctx context.Context, wanted []wantedMint) (left []wantedMint, wait time.Duration) {
	keys := make([]ledger.Pubkey, len(wanted))
	for i, w := range wanted {
		keys[i] = w.key
	}
	asking, done := context.WithTimeout(ctx, mintTimeout)
	defer done()
	state, err := m.config.Fetcher.Fetch(asking, keys, ledger.Confirmed)
	if err != nil {
		var busy *ledger.UpstreamError
		if errors.As(err, &busy) {
			wait = busy.RetryAfter
		}
		return wanted, wait
	}
	there := make(map[ledger.Pubkey]*ledger.AccountWrite, len(state.Accounts))
	for i := range state.Accounts {
		there[state.Accounts[i].Pubkey] = &state.Accounts[i]
	}
	// It stands so until the next slot's block, if that does not say otherwise. A block's own slot is not
	// enough: it may have opened the account.
	news := &ledger.BaseState{Slot: state.Slot + 1}
	for _, w := range wanted {
		switch a := there[w.key]; {
		case a == nil || state.Slot < w.slot:
			left = append(left, w)
		case a.Lamports != 0: // else it was closed since
			news.Accounts = append(news.Accounts, *a)
		}
	}
	if len(news.Accounts) > 0 {
		select {
		case m.found <- news:
		case <-ctx.Done():
		}
	}
	return left, 0
}

// next takes the mints of one question.
func (m *mints) next() []wantedMint {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := min(len(m.wanted), ledger.MaxFetchKeys)
	wanted := m.wanted[:n:n]
	m.wanted = m.wanted[n:]
	return wanted
}

// putBack has mints asked for again, after those that wait.
func (m *mints) putBack(left []wantedMint) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wanted = append(m.wanted, left...)
}
