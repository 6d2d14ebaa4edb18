package rpc

import (
	"context"
	"slices"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/upstream"
)

const (
	maxKnown  = 1 << 18 // accounts that are remembered as known
	maxWanted = 1 << 18 // accounts that wait to be asked for
	// learnTimeout is how long a block waits for the accounts that it touched.
	learnTimeout = 2 * time.Second
)

// maxAsked bounds the accounts that one block waits for: 32 calls.
const maxAsked = 32 * ledger.MaxFetchKeys

// maxAhead is for how many slots an answer waits for the block of its own: a node is asked at its newest
// block, so that one comes soon or, as behind a balancer that lost it, never.
const maxAhead = 512

// learner finds out what blocks do not show of the accounts that they touch. It belongs to the
// goroutine that follows the chain.
type learner struct {
	mode   Accounts
	client *client
	config *Config

	known  *recentAccounts
	wanted map[ledger.Pubkey]struct{}
	ahead  []fetched // of blocks that are not emitted yet

	pause     upstream.Backoff // after a failure
	until     time.Time        // nothing is asked before
	failed    error            // why nothing is
	forgotten int              // accounts that were not asked for because too many waited
}

func newLearner(client *client, config *Config, mode Accounts) *learner {
	return &learner{
		mode: mode, client: client, config: config,
		known: newRecentAccounts(maxKnown), wanted: make(map[ledger.Pubkey]struct{}),
		pause: upstream.Backoff{Min: config.Poll, Max: 10 * time.Second, Random: config.Random},
	}
}

// note looks which accounts of a block have to be asked for.
func (l *learner) note(b *ledger.Block) {
	if l.mode == AccountsNone {
		return
	}
	for i := range b.Accounts {
		w := &b.Accounts[i]
		if w.Lamports == 0 {
			l.known.forget(w.Pubkey)
			delete(l.wanted, w.Pubkey)
			continue
		}
		s := l.known.get(w.Pubkey)
		if s == unknown || l.mode == AccountsTouched && (s == token || w.Known&ledger.FieldToken != 0) {
			l.want(w.Pubkey)
		}
	}
	for i := range b.Mints {
		if key := b.Mints[i].Pubkey; l.known.get(key) == unknown {
			l.want(key)
		}
	}
}

func (l *learner) want(key ledger.Pubkey) {
	if _, ok := l.wanted[key]; !ok && len(l.wanted) >= maxWanted {
		if l.forgotten++; l.forgotten == 1 {
			l.config.Logger.Warn("more accounts are not known than may wait to be asked for: some stay partial until a block touches them again", "waiting", len(l.wanted))
		}
		l.known.forget(key) // so that the next block that touches it asks again
		return
	}
	l.wanted[key] = struct{}{}
}

// ask asks for accounts as they stand at a slot not below at, for a bounded time. What could not be
// had stays wanted; the error says why, or why nothing was asked.
func (l *learner) ask(ctx context.Context, at ledger.Slot) error {
	switch {
	case len(l.wanted) == 0:
		return nil
	case l.client.limited() > 0:
		return &callError{method: "getMultipleAccounts", cause: rateLimited, after: l.client.limited()}
	case time.Now().Before(l.until):
		return l.failed
	}
	answered := l.answered()
	keys := make([]ledger.Pubkey, 0, min(len(l.wanted), maxAsked))
	for key := range l.wanted {
		if len(keys) == maxAsked {
			break
		}
		if !answered[key] {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, learnTimeout)
	defer cancel()
	results, err := l.client.accounts(limited, keys, ledger.Confirmed, at)
	l.ahead = append(l.ahead, results...)
	if err != nil {
		l.until, l.failed = time.Now().Add(l.pause.Next()), err
		return err
	}
	l.pause.Reset()
	return nil
}

// attachAnswers adds to a block, which is about to be emitted, what was asked for and stands at its slot: to
// the block itself where it touched the account, else as base state to be emitted after it.
// What stands at a later slot waits for that one's block.
func (l *learner) attachAnswers(b *ledger.Block) *ledger.BaseState {
	if len(l.ahead) == 0 {
		return nil
	}
	touched := make(map[ledger.Pubkey]bool, len(b.Accounts))
	for i := range b.Accounts {
		touched[b.Accounts[i].Pubkey] = true
	}
	base := &ledger.BaseState{Slot: b.Slot}
	later := l.ahead[:0]
	for _, f := range l.ahead {
		switch {
		case f.Slot > b.Slot && b.Slot <= f.asked+maxAhead:
			later = append(later, f)
			continue
		case f.Slot != b.Slot:
			continue // its block never came, or will not: the accounts are still wanted
		}
		for _, w := range f.Accounts {
			l.learned(&w)
			switch {
			case w.Lamports == 0:
				// Absence never closes an account: a block does.
			case touched[w.Pubkey]:
				b.Accounts = append(b.Accounts, w)
			default:
				base.Accounts = append(base.Accounts, w)
			}
		}
	}
	clear(l.ahead[len(later):])
	l.ahead = later
	if len(base.Accounts) == 0 {
		return nil
	}
	return base
}

// reset forgets what was found out: blocks were taken back, and what they taught with them.
func (l *learner) reset() {
	l.known, l.ahead = newRecentAccounts(maxKnown), nil
}

// rest returns what stands at slots after the last block, for who has no block to add it to: it waits for the chain.
func (l *learner) rest() (states []*ledger.BaseState) {
	for _, f := range l.ahead {
		f.Accounts = slices.DeleteFunc(f.Accounts, func(w ledger.AccountWrite) bool {
			l.learned(&w)
			return w.Lamports == 0 // as attachAnswers does
		})
		f.After = f.Slot
		states = append(states, &f.BaseState)
	}
	l.ahead = nil
	return states
}

// learned notes that an account is known now.
func (l *learner) learned(w *ledger.AccountWrite) {
	delete(l.wanted, w.Pubkey)
	switch {
	case w.Lamports == 0:
		l.known.forget(w.Pubkey)
	case ledger.IsTokenProgram(w.Owner):
		l.known.put(w.Pubkey, token)
	default:
		l.known.put(w.Pubkey, plain)
	}
}

// wantsMore reports whether accounts are wanted of which no answer waits.
func (l *learner) wantsMore() bool {
	answered := l.answered()
	for key := range l.wanted {
		if !answered[key] {
			return true
		}
	}
	return false
}

// answered returns the accounts of which an answer waits for its block.
func (l *learner) answered() map[ledger.Pubkey]bool {
	keys := make(map[ledger.Pubkey]bool)
	for _, f := range l.ahead {
		for i := range f.Accounts {
			keys[f.Accounts[i].Pubkey] = true
		}
	}
	return keys
}
