package geyser

import (
	"context"
	"errors"
	"slices"
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
// amounts are scaled comes after the header.
type mints struct {
	config *Config
	known  map[ledger.Pubkey]struct{} // asked for, or to be asked for; touched by Run's goroutine alone
	warned bool                       // that nobody can be asked; likewise
	wanted chan wantedMint            // has room for those of one question beside wantedMints
	found  chan *ledger.BaseState     // for Run to emit
}

// wantedMint is a mint to ask for, as the block of a slot left it.
type wantedMint struct {
	key  ledger.Pubkey
	slot ledger.Slot
}

func newMints(c *Config) *mints {
	return &mints{
		config: c, known: make(map[ledger.Pubkey]struct{}),
		wanted: make(chan wantedMint, wantedMints+ledger.MaxFetchKeys), found: make(chan *ledger.BaseState),
	}
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
		if len(news.cut) > 0 && !m.warned {
			m.warned = true
			m.config.Logger.Warn("whether mints with extensions scale their amounts stays unknown: the stream is asked for headers and nobody for the rest (see rpc= and data=full)")
		}
		return
	}
	for _, key := range news.closed {
		delete(m.known, key) // what is opened there later may be another mint
	}
	for _, key := range news.cut {
		if _, ok := m.known[key]; ok || len(m.wanted) >= wantedMints {
			continue
		}
		if len(m.known) >= knownMints {
			clear(m.known)
		}
		m.known[key] = struct{}{}
		m.wanted <- wantedMint{key, news.slot}
	}
}

// start begins to ask; the function returned ends that.
func (m *mints) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { m.ask(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// ask asks for mints until ctx ends. Those without an answer are asked for again after the others, slower
// each time that nothing is answered.
func (m *mints) ask(ctx context.Context) {
	backoff := upstream.Backoff{Min: m.config.BackoffMin, Max: m.config.BackoffMax, Random: m.config.Random}
	for {
		wanted := m.next(ctx)
		if len(wanted) == 0 {
			return
		}
		left, wait := m.askFor(ctx, wanted)
		for _, w := range left {
			m.wanted <- w // there is room: they were taken from it, and no more than wantedMints are added
		}
		if len(left) < len(wanted) {
			backoff.Reset()
		}
		if len(left) > 0 && backoff.Wait(ctx, wait) != nil {
			return
		}
	}
}

// next waits for mints and returns those of one question; none when ctx ends.
func (m *mints) next(ctx context.Context) (wanted []wantedMint) {
	select {
	case w := <-m.wanted:
		wanted = append(wanted, w)
	case <-ctx.Done():
		return nil
	}
	for len(wanted) < ledger.MaxFetchKeys {
		select {
		case w := <-m.wanted:
			wanted = append(wanted, w)
		default:
			return wanted
		}
	}
	return wanted
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
		if busy, ok := errors.AsType[*ledger.UpstreamError](err); ok {
			wait = busy.RetryAfter
		}
		return wanted, wait
	}
	// It stands so until the next slot's block, if that does not say otherwise. A block's own slot is not
	// enough: it may have opened the account.
	news := &ledger.BaseState{Slot: state.Slot + 1, After: state.Slot}
	for _, w := range wanted {
		i := slices.IndexFunc(state.Accounts, func(a ledger.AccountWrite) bool { return a.Pubkey == w.key })
		switch {
		case i < 0 || state.Slot < w.slot:
			left = append(left, w)
		case state.Accounts[i].Lamports != 0: // else it was closed since
			news.Accounts = append(news.Accounts, state.Accounts[i])
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
