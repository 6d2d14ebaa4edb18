package fill

import (
	"errors"
	"fmt"
	"time"

	"ledgerd/engine/ledger"
)

// errFrozen refuses to fetch while ingest has stopped or is paused.
var errFrozen = fmt.Errorf("ingest stands still, nothing can be learned: %w", ledger.ErrUnavailable)

// errShort refuses to fetch while memory runs short.
var errShort = fmt.Errorf("memory runs short, nothing is fetched: %w", ledger.ErrUnavailable)

// Account continues a query for which Config.Held returned a, v and err. If the account is not held, or Config.Lacks says that something of
// it is unknown or too old, it fetches the account and returns the answer after that, by the deadline of the query.
func (f *Filler) Account(q ledger.Query, key ledger.Pubkey, a ledger.Account, v ledger.View, err error) (ledger.Account, ledger.View, error) {
	q.Wait = 0 // Held has waited already
	switch {
	case err == nil && f.Lacks(&a):
		return f.complete(q, key, a, v)
	case !notIndexed(err):
		return a, v, err
	}
	a, v, err = f.fetched(q, key)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil:
		f.stats.Found++
	case errors.Is(err, ledger.ErrNotFound):
		f.stats.Missing++
	default:
		f.stats.Unavailable++
	}
	return a, v, err
}

// fetched answers a query for an account that is not held.
func (f *Filler) fetched(q ledger.Query, key ledger.Pubkey) (ledger.Account, ledger.View, error) {
	deadline := f.deadline(q)
	var p *pending // kept until it is done, since its error is the answer
	for {
		changed := f.Board.Next() // before the state is read, so that none is missed
		a, v, err := f.Held(q, key)
		if !notIndexed(err) {
			return a, v, err
		}
		if p == nil {
			if p, err = f.awaitAt(v, key); err != nil {
				return a, v, err
			}
		}
		var done <-chan struct{}
		if p != nil {
			done = p.done
		}
		select {
		case <-done:
			if p.err != nil {
				return a, v, p.err
			}
			p = nil
		case <-changed: // a block may have created the account
		case <-deadline:
			return a, v, ledger.ErrFetching
		}
	}
}

// deadline returns what tells that a query must be answered now.
func (f *Filler) deadline(q ledger.Query) <-chan time.Time {
	if q.Deadline.IsZero() {
		return time.After(f.Deadline)
	}
	return time.After(time.Until(q.Deadline))
}

// awaitAt makes an account that is not held at a view pending. It returns nil if a newer view has the
// answer, so the query has to wait for the next publication. A *ledger.NotFoundError is the answer at the view.
func (f *Filler) awaitAt(v ledger.View, key ledger.Pubkey) (*pending, error) {
	switch _, _, err := f.Held(ledger.Query{}, key); {
	case err == nil || errors.Is(err, ledger.ErrNotFound) && !notIndexed(err):
		return nil, nil
	case !notIndexed(err):
		return nil, err
	}
	switch k, known := f.remembered(key); {
	case known && k.unwanted:
		return nil, &ledger.NotFoundError{Absence: ledger.AccountNotIndexed}
	case known && v.Tip().Slot >= k.since:
		return nil, &ledger.NotFoundError{Absence: ledger.AccountNotFound}
	case known:
		return nil, nil
	}
	return f.await(key, false, 0)
}

// complete answers a query for a held account of which something is unknown, or too old. If that cannot be fetched it returns the
// account as it is, without an error.
func (f *Filler) complete(q ledger.Query, key ledger.Pubkey, a ledger.Account, v ledger.View) (ledger.Account, ledger.View, error) {
	p, _ := f.incomplete(key)
	if p == nil || p.atLeast > f.finalized() {
		return a, v, nil // the account is completed later, or not at all, or known at a newer view
	}
	select {
	case <-p.done:
	case <-f.deadline(q):
		return a, v, nil
	}
	if after, view, err := f.Held(q, key); err == nil || errors.Is(err, ledger.ErrNotFound) {
		return after, view, err
	}
	return a, v, nil
}

// incomplete makes a held account pending of which something is unknown, or too old, and returns the slot of its newest write. It returns
// nil where there is nothing to fetch, or nothing may be fetched.
func (f *Filler) incomplete(key ledger.Pubkey) (p *pending, since ledger.Slot) {
	a, _, err := f.Held(ledger.Query{}, key)
	if err != nil || !f.Lacks(&a) {
		return nil, 0
	}
	if _, known := f.remembered(key); known {
		return nil, 0
	}
	since = a.Provenance.Slot()
	if p, err = f.await(key, true, since); err != nil {
		return nil, 0
	}
	return p, since
}

// notIndexed reports whether err says that an account is not held.
func notIndexed(err error) bool {
	absent, ok := errors.AsType[*ledger.NotFoundError](err)
	return ok && absent.Absence == ledger.AccountNotIndexed
}
