package engine

import (
	"errors"
	"fmt"
	"time"

	"ledgerd/engine/ledger"
)

// # Filling on demand
//
// A source may show only what changes. An account that is asked for and that no block has
// touched yet is then fetched from the node once, learned as base state, and from there on
// followed like any other.
//
// Whoever asks finds or makes a want, one for each key, and waits for it; so all that ask for a
// key wait for one fetch. One goroutine ([filler.run]) fetches what is wanted, many keys at
// once, and hands the answers to the sequencer, which learns them between two events
// ([Engine.learn]). They are records of the log like all base state: who asked gets an answer
// only when they are durable and published, and from the state like everybody else.
//
// # When an answer is good
//
// The node answers as of a slot F, at confirmed level. The answer is learned only
//   - when the chain here is known confirmed up to F, has a block at F, and was not undone since the node
//     was asked: so no answer is stamped with a slot that is older than what it tells, and none
//     stands on a branch that this chain is not on, as far as slots tell;
//   - when every block of the chain after F is known to have left the account alone. One that
//     changed it made it held, and wins. But one that closed it left no trace, as nothing was
//     held, nor does one that a filter kept out; so the sequencer keeps which keys were
//     written lately (touches). Then the account is gone, or the node is asked again.
//
// Should a rollback after all go below F, what was learned is asked for again (unsettled).
// A key that does not exist at F is remembered for a short while, as of F: an answer at or past
// F is then "not found", unless a block made the account, which shows in the state. What was
// learned and yet is not held a filter keeps out: it is "not indexed", and remembered likewise.

// errNothingLearned refuses to fetch while ingest stands still.
var errNothingLearned = fmt.Errorf("ingest stands still, nothing can be learned: %w", ledger.ErrUnavailable)

// fillAccount answers a question about an account that is not held, as Account does.
func (e *Engine) fillAccount(q ledger.Query, key ledger.Pubkey) (ledger.Account, ledger.View, error) {
	a, v, err := e.awaitAccount(q, key)
	switch {
	case err == nil:
		e.fill.stats.found.Add(1)
	case errors.Is(err, ledger.ErrNotFound):
		e.fill.stats.missing.Add(1)
	default:
		e.fill.stats.unavailable.Add(1)
	}
	return a, v, err
}

func (e *Engine) awaitAccount(q ledger.Query, key ledger.Pubkey) (ledger.Account, ledger.View, error) {
	timer := time.NewTimer(queryDeadline)
	defer timer.Stop()
	q.Wait = 0  // it was waited for
	var w *want // kept until it is done: what came of it tells more than the state
	for {
		changed := e.nextPublication() // before the state is read, so that none is missed
		a, v, err := e.account(q, key)
		if !notIndexed(err) {
			return a, v, err
		}
		if w == nil {
			if w, err = e.wantAt(v, key); errors.Is(err, errLookAgain) {
				continue
			} else if err != nil {
				return a, v, err
			}
		}
		var done <-chan struct{}
		if w != nil {
			done = w.done
		}
		select {
		case <-done:
			if w.err != nil {
				return a, v, w.err
			}
			if w.learned != 0 && e.keepsOut(key, w.learned) {
				e.fill.unwanted(key)
			}
			w = nil
		case <-changed: // a block may have made it
		case <-timer.C:
			return a, v, ledger.ErrFetching
		}
	}
}

// wantAt returns what to wait for where an account is not held at a view: a want or, where it is
// nil, the next publication, as all is known and only the view has to get there. A
// *ledger.NotFoundError says that the account does not exist at the view.
func (e *Engine) wantAt(v ledger.View, key ledger.Pubkey) (*want, error) {
	if e.frozen.Load() != nil {
		return nil, errNothingLearned
	}
	newest := v
	if v.Commitment != ledger.Processed {
		var err error
		_, newest, err = e.account(ledger.Query{}, key)
		switch {
		case err == nil || errors.Is(err, ledger.ErrNotFound) && !notIndexed(err):
			return nil, nil
		case !notIndexed(err):
			return nil, err
		}
	}
	switch k, known := e.fill.remembered(key); {
	case known && k.unwanted:
		return nil, &ledger.NotFoundError{Absence: ledger.AccountNotIndexed}
	case known && v.Tip().Slot >= k.since:
		return nil, &ledger.NotFoundError{Absence: ledger.AccountNotFound}
	case known:
		return nil, nil
	}
	return e.fill.want(key, newest.Tip().Version, want{})
}

// keepsOut reports whether an account is not held although a visible record taught it.
func (e *Engine) keepsOut(key ledger.Pubkey, learned ledger.Version) bool {
	_, v, err := e.account(ledger.Query{}, key)
	return notIndexed(err) && v.Tip().Version >= learned
}

func notIndexed(err error) bool {
	var absent *ledger.NotFoundError
	return errors.As(err, &absent) && absent.Absence == ledger.AccountNotIndexed
}

// completeAccount answers a question about an account of which not every field is known. What is
// known is an answer too, so no trouble on the way is an error.
func (e *Engine) completeAccount(q ledger.Query, key ledger.Pubkey, a ledger.Account, v ledger.View) (ledger.Account, ledger.View, error) {
	newest, at := a, v
	if v.Commitment != ledger.Processed {
		var err error
		if newest, at, err = e.account(ledger.Query{}, key); err != nil || newest.Unknown() == 0 {
			return a, v, nil // this view will get there
		}
	}
	if _, known := e.fill.remembered(key); known || e.frozen.Load() != nil {
		return a, v, nil
	}
	q.Wait = 0 // it was waited for
	w, err := e.fill.want(key, at.Tip().Version, want{held: true, atLeast: newest.Provenance.Slot()})
	switch {
	case errors.Is(err, errLookAgain):
		return e.Account(q, key)
	case err != nil:
		return a, v, nil
	}
	timer := time.NewTimer(queryDeadline)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-timer.C:
		return a, v, nil
	}
	if after, view, err := e.account(q, key); err == nil || errors.Is(err, ledger.ErrNotFound) {
		return after, view, err
	}
	return a, v, nil
}
