package rpc

import (
	"context"
	"errors"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/wait"
)

const (
	maxKnown  = 1 << 18 // accounts that are remembered as known
	maxWanted = 1 << 18 // accounts that wait to be asked for
	// knownFor is how long an account counts as known. Blocks do not show that another program owns it now. At most maxKnown are asked for
	// again in that time, and a busy ledger comes to so many sooner.
	knownFor = 5 * time.Minute
	// learnTimeout is how long a block waits for the accounts that it touched.
	learnTimeout = 2 * time.Second
)

// maxAsked bounds the accounts that one block waits for: 32 calls.
const maxAsked = 32 * ledger.MaxFetchKeys

// maxAhead is how many slots past a block an answer may stand. A node is asked at its newest block: what is far from that is wrong.
const maxAhead = 512

// learner finds out what blocks do not show of the accounts that they touch. It belongs to the
// goroutine that follows the chain.
type learner struct {
	mode   Accounts
	client *client
	config *Config

	since  time.Time                  // what is known was learned since then
	known  map[ledger.Pubkey]bool     // and whether it is a token account or a mint: blocks do not show all of those
	wanted map[ledger.Pubkey]struct{} // to be asked for

	pause  wait.Backoff // after a failure
	until  time.Time    // nothing is asked before
	failed error        // why nothing is
}

func newLearner(client *client, config *Config, mode Accounts) *learner {
	return &learner{
		mode: mode, client: client, config: config, since: time.Now(),
		known: make(map[ledger.Pubkey]bool), wanted: make(map[ledger.Pubkey]struct{}),
		pause: wait.Backoff{Min: poll, Max: 10 * time.Second, Random: config.Random},
	}
}

// note looks which accounts of a block have to be asked for: those that may be held, and the mints of token accounts.
func (l *learner) note(b *ledger.Block) {
	if l.mode == AccountsNone {
		return
	}
	if time.Since(l.since) > knownFor {
		l.forget()
	}
	filter := l.config.Filter
	listed := filter != nil && len(filter.Owners()) == 0
	for i := range b.Accounts {
		w := &b.Accounts[i]
		if listed && !filter.Lists(&w.Pubkey) {
			continue
		}
		if listed && w.Token != nil {
			l.wantUnknown(w.Token.Mint)
		}
		if w.Lamports == 0 {
			delete(l.known, w.Pubkey)
			delete(l.wanted, w.Pubkey)
			continue
		}
		isToken, isKnown := l.known[w.Pubkey]
		if !isKnown || l.mode == AccountsTouched && !w.ReadOnly && (isToken || w.Known&ledger.FieldToken != 0) {
			l.want(w.Pubkey)
		}
	}
	for i := range b.Mints {
		if key := b.Mints[i].Pubkey; !listed || filter.Lists(&key) {
			l.wantUnknown(key)
		}
	}
}

func (l *learner) wantUnknown(key ledger.Pubkey) {
	if _, isKnown := l.known[key]; !isKnown {
		l.want(key)
	}
}

func (l *learner) want(key ledger.Pubkey) {
	if len(l.wanted) >= maxWanted {
		delete(l.known, key) // so that the next block that touches it asks again
		return
	}
	l.wanted[key] = struct{}{}
}

// ask asks for accounts as they stand at the slot of a block, which is about to be emitted, or later, for a bounded time. What stands
// at that slot becomes a part of the block where it touched the account. The rest is returned, to be emitted after it: each
// waits until the chain has reached its slot. What could not be had stays wanted; the error says why, or why nothing was asked.
func (l *learner) ask(ctx context.Context, b *ledger.Block) (later []*ledger.BaseState, err error) {
	switch {
	case len(l.wanted) == 0:
		return nil, nil
	case l.client.limited() > 0:
		return nil, &callError{method: "getMultipleAccounts", cause: rateLimited, after: l.client.limited()}
	case time.Now().Before(l.until):
		return nil, l.failed
	}
	keys := make([]ledger.Pubkey, 0, min(len(l.wanted), maxAsked))
	for key := range l.wanted {
		if len(keys) == maxAsked {
			break
		}
		keys = append(keys, key)
	}
	limited, cancel := context.WithTimeout(ctx, learnTimeout)
	defer cancel()
	results, err := l.client.accounts(limited, keys, ledger.Confirmed, b.Slot)
	for i := range results {
		if results[i].Slot > b.Slot+maxAhead {
			err = l.client.counted(&callError{method: "getMultipleAccounts", cause: garbage, detail: errFarAhead})
		} else if base := l.take(b, &results[i]); len(base.Accounts) > 0 {
			later = append(later, base)
		}
	}
	if err != nil {
		l.until, l.failed = time.Now().Add(l.pause.Next()), err
		return later, err
	}
	l.pause.Reset()
	return later, nil
}

var errFarAhead = errors.New("it stands far past the node's newest block")

// take adds what was answered to a block, and returns what does not belong there. That an account does not exist never closes it: a
// block does.
func (l *learner) take(b *ledger.Block, answer *ledger.BaseState) *ledger.BaseState {
	touched := make(map[ledger.Pubkey]bool)
	for i := range b.Accounts {
		touched[b.Accounts[i].Pubkey] = answer.Slot == b.Slot
	}
	rest := &ledger.BaseState{Slot: answer.Slot, After: answer.Slot}
	for _, w := range answer.Accounts {
		l.learned(&w)
		switch {
		case w.Lamports == 0:
		case touched[w.Pubkey]:
			b.Accounts = append(b.Accounts, w)
		default:
			rest.Accounts = append(rest.Accounts, w)
		}
	}
	return rest
}

// forget forgets what is known: it may have changed, or blocks were taken back, and what they taught with them.
func (l *learner) forget() {
	l.since = time.Now()
	clear(l.known)
}

// learned notes that an account is known now. Past maxKnown all others are forgotten, and asked for again when blocks touch them.
func (l *learner) learned(w *ledger.AccountWrite) {
	delete(l.wanted, w.Pubkey)
	delete(l.known, w.Pubkey)
	if w.Lamports == 0 {
		return
	}
	if len(l.known) == maxKnown {
		l.forget()
	}
	l.known[w.Pubkey] = ledger.IsTokenProgram(w.Owner)
}
