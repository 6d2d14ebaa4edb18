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

// keptMints bounds the mints that are remembered.
const keptMints = 1 << 17

// mintTimeout bounds one question.
const mintTimeout = 10 * time.Second

// isAnswered stands for the slot of a mint that was asked for.
const isAnswered = ledger.MaxSlot

// mints asks for the mints of which the stream shows the header alone, each until it is answered: whether their
// amounts are scaled comes after the header.
type mints struct {
	config *Config
	warned bool                   // that nobody can be asked; touched by Run's goroutine alone
	more   chan struct{}          // holds a token when there may be mints to ask for
	found  chan *ledger.BaseState // for Run to emit

	mu    sync.Mutex
	slots map[ledger.Pubkey]ledger.Slot // of the blocks that showed them, or isAnswered
}

func newMints(c *Config) *mints {
	return &mints{
		config: c, slots: make(map[ledger.Pubkey]ledger.Slot), more: make(chan struct{}, 1), found: make(chan *ledger.BaseState),
	}
}

// confirmed takes what a block says of such mints that will not be undone. So it is known where the mints are asked for
// at confirmed level, and what is answered stays.
func (m *mints) confirmed(b *ledger.Block) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range b.Accounts {
		switch w := &b.Accounts[i]; {
		case w.Lamports == 0:
			delete(m.slots, w.Pubkey) // what is opened there later may be another mint
		case w.Mint != nil && !w.Mint.Scaled.Known:
			m.wantLocked(w.Pubkey, b.Slot)
		}
	}
}

func (m *mints) wantLocked(key ledger.Pubkey, slot ledger.Slot) {
	if m.config.Fetcher == nil {
		if !m.warned {
			m.warned = true
			m.config.Logger.Warn("whether mints with extensions scale their amounts stays unknown: the stream is asked for headers and nobody for the rest (see rpc= and data=full)")
		}
		return
	}
	if _, isKnown := m.slots[key]; isKnown {
		return
	}
	if len(m.slots) >= keptMints {
		clear(m.slots) // those that are not answered are asked for when they are written again
	}
	m.slots[key] = slot
	token(m.more)
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

// ask asks for mints until ctx ends, slower each time that nothing is answered.
func (m *mints) ask(ctx context.Context) {
	backoff := upstream.Backoff{Min: m.config.BackoffMin, Max: m.config.BackoffMax, Random: m.config.Random}
	for {
		keys := m.some()
		if len(keys) == 0 {
			select {
			case <-m.more:
				continue
			case <-ctx.Done():
				return
			}
		}
		answered, wait := m.askFor(ctx, keys)
		if answered > 0 {
			backoff.Reset()
		}
		if answered < len(keys) && backoff.Wait(ctx, wait) != nil || ctx.Err() != nil {
			return
		}
	}
}

// some returns the mints of one question: any, so that none waits for another that nobody answers.
func (m *mints) some() (keys []ledger.Pubkey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, slot := range m.slots {
		if slot != isAnswered && len(keys) < ledger.MaxFetchKeys {
			keys = append(keys, key)
		}
	}
	return keys
}

// askFor asks for mints and hands the answer to Run. It returns how many were answered, and how long the node asks
// to wait: it may be down, or behind the blocks that showed them.
func (m *mints) askFor(ctx context.Context, keys []ledger.Pubkey) (answered int, wait time.Duration) {
	asking, done := context.WithTimeout(ctx, mintTimeout)
	defer done()
	state, err := m.config.Fetcher.Fetch(asking, keys, ledger.Confirmed)
	if err != nil {
		if busy, ok := errors.AsType[*ledger.UpstreamError](err); ok {
			wait = busy.RetryAfter
		}
		return 0, wait
	}
	// It stands so until the next slot's block, if that does not say otherwise. A block's own slot is not
	// enough: it may have opened the account.
	news := &ledger.BaseState{Slot: state.Slot + 1, After: state.Slot}
	m.mu.Lock()
	for _, key := range keys {
		i := slices.IndexFunc(state.Accounts, func(a ledger.AccountWrite) bool { return a.Pubkey == key })
		if slot, isKnown := m.slots[key]; i < 0 || isKnown && state.Slot < slot {
			continue
		} else if isKnown {
			m.slots[key] = isAnswered
		}
		if answered++; state.Accounts[i].Lamports != 0 { // else it was closed since
			news.Accounts = append(news.Accounts, state.Accounts[i])
		}
	}
	m.mu.Unlock()
	if len(news.Accounts) > 0 {
		select {
		case m.found <- news:
		case <-ctx.Done():
		}
	}
	return answered, 0
}
