package fill

import (
	"errors"
	"fmt"
	"time"

	"ledgerd/engine/ledger"
)

// errFrozen refuses to fetch while ingest stands still.
var errFrozen = fmt.Errorf("ingest stands still, nothing can be learned: %w", ledger.ErrUnavailable)

// Account takes what Config.Held answered to a question about an account. It fetches the account if it is not held, and what is
// unknown of it if it is held in part, and returns the answer after that, within Config.Deadline.
func (f *Filler) Account(q ledger.Query, key ledger.Pubkey, a ledger.Account, v ledger.View, err error) (ledger.Account, ledger.View, error) {
	q.Wait = 0 // it was waited for
	switch {
	case err == nil && a.Unknown() != 0:
		return f.complete(q, key, a, v)
	case !notIndexed(err):
		return a, v, err
	}
	a, v, err = f.fetched(q, key)
	switch {
	case err == nil:
		f.stats.found.Add(1)
	case errors.Is(err, ledger.ErrNotFound):
		f.stats.missing.Add(1)
	default:
		f.stats.unavailable.Add(1)
	}
	return a, v, err
}

// fetched answers a question about an account that is not held.
func (f *Filler) fetched(q ledger.Query, key ledger.Pubkey) (ledger.Account, ledger.View, error) {
	timer := time.NewTimer(f.Deadline)
	defer timer.Stop()
	var p *pending // kept until it is done, as its error is an answer
	for {
		changed := f.NextPublication() // before the state is read, so that none is missed
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
		case <-changed: // a block may have made it
		case <-timer.C:
			return a, v, ledger.ErrFetching
		}
	}
}

// awaitAt returns what to wait for where an account is not held at a view: nil for the next publication,
// where all is known and only the view has to get there. A *ledger.NotFoundError is the answer at the view.
func (f *Filler) awaitAt(v ledger.View, key ledger.Pubkey) (*pending, error) {
	if f.Frozen() {
		return nil, errFrozen
	}
	if v.Commitment != ledger.Processed {
		switch _, _, err := f.Held(ledger.Query{}, key); {
		case err == nil || errors.Is(err, ledger.ErrNotFound) && !notIndexed(err):
			return nil, nil
		case !notIndexed(err):
			return nil, err
		}
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

// complete answers a question about an account of which not every field is known. What is
// known is an answer too, so no failure on the way is an error.
func (f *Filler) complete(q ledger.Query, key ledger.Pubkey, a ledger.Account, v ledger.View) (ledger.Account, ledger.View, error) {
	newest := a
	if v.Commitment != ledger.Processed {
		var err error
		if newest, _, err = f.Held(ledger.Query{}, key); err != nil || newest.Unknown() == 0 {
			return a, v, nil // this view will get there
		}
	}
	if _, known := f.remembered(key); known || f.Frozen() {
		return a, v, nil
	}
	p, err := f.await(key, true, newest.Provenance.Slot())
	if err != nil || p.atLeast > f.finalized() {
		return a, v, nil // it is completed later
	}
	timer := time.NewTimer(f.Deadline)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		return a, v, nil
	}
	if after, view, err := f.Held(q, key); err == nil || errors.Is(err, ledger.ErrNotFound) {
		return after, view, err
	}
	return a, v, nil
}

func notIndexed(err error) bool {
	var absent *ledger.NotFoundError
	return errors.As(err, &absent) && absent.Absence == ledger.AccountNotIndexed
}
